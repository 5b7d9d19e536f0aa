"""Take README's pictures, for wide pages and for telephones, and the book's preview again: python -m scripts.photographs

In real time, because the arcs are drawn by and by. Needs Chromium, as the tests do.
"""

import io
import shutil

from PIL import Image
from playwright.sync_api import sync_playwright

from scripts import ROOT

SECONDS = 8  # until everything has been drawn
PICTURES = {  # file: page, its width, its height, points of the picture for each of the page's
    "docs/explainer.png": ("data/explainer.html?compact&theme=light", 830, 500, 2),
    "docs/explainer-dark.png": ("data/explainer.html?compact&theme=dark", 830, 500, 2),
    "docs/explainer-phone.png": ("data/explainer.html?compact&theme=light", 390, 674, 2),
    "docs/explainer-phone-dark.png": ("data/explainer.html?compact&theme=dark", 390, 674, 2),
    "docs/book/static/preview.png": ("docs/book/preview.html", 1200, 630, 1),
}


def main():
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--allow-file-access-from-files"])
        for file, (address, width, height, scale) in PICTURES.items():
            page = browser.new_page(viewport={"width": width, "height": height}, device_scale_factor=scale)
            page.goto(f"{ROOT.as_uri()}/{address}")
            page.wait_for_timeout(1000 * SECONDS)
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            picture.quantize(256, dither=Image.Dither.NONE).save(ROOT / file, optimize=True)  # a third of the bytes
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
