# `make` alone lists the verbs. Works with GNU make 3.81 (macOS) and newer; elsewhere use `python scripts/environment.py VERB`,
# which is all that this file calls (release, grade, mark, feedback, copies, export and term are `classroom release` and so on there).

.PHONY: help setup lab handout check test weekly execute experiments stability lint book slides try release grade mark feedback copies export term clean
.DEFAULT_GOAL := help

# The first Python that starts and is new enough, 3.11 before others because the stored outputs were made with it;
# failing that any Python, which then says that it is too old.
PYTHON ?= $(shell \
  for new in 3,10 2,0; do for name in python3.11 python3.12 python3.13 python3.14 python3.10 python3 python python2; do \
    if $$name -c "import sys; sys.exit(sys.version_info < ($$new))" >/dev/null 2>&1; then echo $$name; exit; fi; \
  done; done)
RUN = @python="$(PYTHON)"; \
  if [ -z "$$python" ]; then \
    echo "No Python was found: install Python 3.10 or newer from python.org or conda, then run the same command again."; \
    exit 1; \
  fi; "$$python" scripts/environment.py

help:  ## list these verbs
	@echo "make VERB, where VERB is one of"
	@sed -n 's/^\([a-z]*\):.*## /  \1@/p' Makefile | awk -F@ '{ printf "%-10s %s\n", $$1, $$2 }'

setup:  ## make the environment and do nothing else
	$(RUN) setup

lab:  ## make the environment and your own copies if need be, then open them in JupyterLab; ARGS=--finished: with results
	$(RUN) lab $(ARGS)

handout:  ## your own copies of the lessons, in my_lessons/, without JupyterLab; NB="03": a new version beside your work
	$(RUN) handout $(NB)

check:  ## after a change: style, spelling, the tests nearest to it, the other quick ones, the notebooks that changed
	$(RUN) check $(ARGS)

test:  ## before a change goes out: style, spelling, tests, and every stored output against a fresh run
	$(RUN) test $(ARGS)

weekly:  ## all that takes long as well: every seed, every lesson in a browser, the experiments in full
	$(RUN) weekly $(ARGS)

execute:  ## run notebooks again and store their outputs: all, or NB="notebooks/01*.ipynb"
	$(RUN) execute $(NB)

experiments:  ## run the experiments in full and write the register of claims: all, or NB="notebooks/experiments/01*.ipynb"
	$(RUN) experiments $(NB)

stability:  ## do the stored outputs hold with other threads, processors, package versions? NB="..." chooses
	$(RUN) stability $(NB)

lint:  ## check the style of the code and the spelling
	$(RUN) lint $(ARGS)

book:  ## make a site of all lessons, to read and to run in a browser: build/book/html; ARGS=--serve shows it
	$(RUN) book $(ARGS)

slides:  ## a lesson as a talk, NB=07: one HTML file that needs no network, in build/slides
	$(RUN) slides $(NB) $(ARGS)

# $(call need,NAME): one sentence when the variable NAME is missing
need = @[ -n "$($(1))" ] || { echo "Say $(1)= as well, as in: make $@ $(EXAMPLE)"; exit 1; }

try: EXAMPLE = A=assignment2
try:  ## for teachers: a dry run with ten imaginary students, make try A=assignment2 [OUT=trial]
	$(call need,A)
	$(RUN) classroom try "$(A)" $(if $(OUT),"$(OUT)")

release: EXAMPLE = A=assignment1 OUT=handout
release:  ## write an assignment for students, make release A=assignment1 OUT=handout [ARGS="--variant autumn-2027"]
	$(call need,A)
	$(call need,OUT)
	$(RUN) classroom release "$(A)" "$(OUT)" $(ARGS)

grade: EXAMPLE = A=assignment1 FROM=submissions.zip OUT=graded
grade:  ## grade what they handed in, make grade A=assignment1 FROM=submissions.zip OUT=graded
	$(call need,A)
	$(call need,FROM)
	$(call need,OUT)
	$(RUN) classroom grade "$(A)" "$(FROM)" "$(OUT)" $(ARGS)

mark: EXAMPLE = OUT=graded
mark:  ## mark written answers on a page in your browser, make mark OUT=graded
	$(call need,OUT)
	$(RUN) classroom mark "$(OUT)" $(ARGS)

feedback: EXAMPLE = OUT=graded
feedback:  ## write a page for each student and one for you, make feedback OUT=graded
	$(call need,OUT)
	$(RUN) classroom feedback "$(OUT)" $(ARGS)

copies: EXAMPLE = OUT=graded
copies:  ## write a page for you on submissions that are alike, make copies OUT=graded
	$(call need,OUT)
	$(RUN) classroom copies "$(OUT)"

export: EXAMPLE = OUT=graded FORMAT=moodle INTO=worksheet.csv
export:  ## write the grades, make export OUT=graded FORMAT=csv, canvas, moodle or gradescope [INTO=worksheet.csv]
	$(call need,OUT)
	$(RUN) classroom export "$(OUT)" --format "$(or $(FORMAT),csv)" $(if $(INTO),--into "$(INTO)") $(if $(COLUMN),--column "$(COLUMN)") $(ARGS)

term: EXAMPLE = GRADED='graded1 graded2'
term:  ## write a page over several assignments, the newest last, make term GRADED='graded1 graded2' [OUT=term]
	$(call need,GRADED)
	$(RUN) classroom term $(GRADED) $(if $(OUT),--out "$(OUT)") $(ARGS)

clean:  ## remove the environment and caches; notebooks and your progress stay
	rm -rf .venv .venv.lock build *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
