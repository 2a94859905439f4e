"""The site: the pages of docs/ as HTML that asks nobody for anything, and what is generated from the code for it.

python -m website              builds the site (make docs)
python -m website.reference    rewrites docs/reference from the code
python -m website.notebooks    rewrites the lectures in examples/ from the pages
"""
