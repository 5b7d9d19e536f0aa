"""What the public repository says of itself: one version, forms that can be filled in, and where to report what."""

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import yaml

from helpers.page.course import version
from scripts import address

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
FORMS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
         for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"}


def said(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_of_pyproject_is_the_one_that_is_cited_and_the_newest_that_is_described():
    number, newest = version(), re.search(r"^## (\S+) · (\d{4}-\d\d-\d\d)$", said("CHANGELOG.md"), re.MULTILINE)
    cited = yaml.safe_load(said("CITATION.cff"))
    assert re.fullmatch(r"\d+\.\d+\.\d+", number)
    assert newest, "CHANGELOG.md: a version's heading is `## 1.2.3 · 2027-10-31`."
    assert newest[1] == cited["version"] == number and newest[2] == str(cited["date-released"])
    assert not version(ROOT / "data"), "without pyproject.toml, as in a browser, it is not known"


def test_the_citation_says_what_pyproject_says():
    cited = yaml.safe_load(said("CITATION.cff"))
    assert {"authors", "cff-version", "message", "title"} <= set(cited), "which its format requires"
    assert cited["authors"] == [{"name": "the course's authors"}]
    assert "authors = [{ name = \"the course's authors\" }]" in said("pyproject.toml")
    assert " AND ".join(cited["license"]) in said("pyproject.toml")


def test_each_page_leads_to_a_form_whose_fields_it_begins_to_fill_in():
    assert {*address.REPORTS.values(), "elsewhere"} == set(FORMS)  # "elsewhere": the page of a claim
    for form in FORMS:
        parts = urlsplit(address.report(form, "ada/course", version="1.2.3"))
        assert (parts.netloc, parts.path) == ("github.com", "/ada/course/issues/new")
        query, ids = parse_qs(parts.query), {field.get("id") for field in FORMS[form]["body"]}
        assert query == {"template": [f"{form}.yml"], "version": ["1.2.3"]} and "version" in ids
        assert (GITHUB / "ISSUE_TEMPLATE" / query["template"][0]).is_file()
    assert {"page", "cell"} <= {field.get("id") for field in FORMS["mistake"]["body"]}, "which docs/book fills in"


def test_what_security_md_points_to_is_there():
    text, teaching = (GITHUB / "SECURITY.md").read_text(encoding="utf-8"), said("docs/teaching.md")
    assert "(../docs/teaching.md#what-is-defended-and-what-is-not)" in text
    assert "\n## What is defended, and what is not\n" in teaching
    for word in ("Defended", "Not defended", "--without-sandbox-i-trust-every-student"):
        assert word in text and word in teaching


def test_a_release_is_tested_and_has_the_tag_that_pyproject_says():
    flow = yaml.safe_load((GITHUB / "workflows" / "release.yml").read_text(encoding="utf-8"))
    steps = [step.get("run", "") for step in flow["jobs"]["release"]["steps"]]
    made = next(i for i, step in enumerate(steps) if "gh release create" in step)
    assert flow[True] == {"push": {"tags": ["v*"]}} and any(".ci/run" in step for step in steps[:made])
    held = next(step for step in steps[:made] if "pyproject.toml" in step)
    assert re.search(r'version = \\"\$\{TAG#v\}\\"', held) and f'\nversion = "{version()}"\n' in said("pyproject.toml")
