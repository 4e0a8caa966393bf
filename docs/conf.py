"""How the documentation is built: Sphinx over the Markdown pages of this folder.

Everything a page shows is made by the build: tutorials and figures are executed (MyST-NB), the
reference is written from the public names and from the commands. Everything a page needs to be
viewed is copied into the site; nothing is loaded from elsewhere. The folders decisions and notes
stay in the repository: a link to them becomes the path of the file.
"""

import json
import os
import re
import shutil
import sys
import tempfile
from html import escape
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))
# the cells of a page in a folder find pictures.py, measured.py and typed.py, too
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))

# a kernel talks to this process over a local port, which is no news at every page
PROFILE = Path(tempfile.mkdtemp()) / "profile_default"
PROFILE.mkdir()
(PROFILE / "ipython_kernel_config.py").write_text("get_config().IPKernelApp.log_level = 'ERROR'")
os.environ["IPYTHONDIR"] = str(PROFILE.parent)

import command_pages  # noqa: E402  (these two stand beside this file)
import reference_pages  # noqa: E402

import evenhand  # noqa: E402

project = "evenhand"
author = "The evenhand developers"
copyright = "the evenhand developers"
version = release = evenhand.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
]
templates_path = ["_templates"]
OFF_THE_SITE = ("decisions", "notes")
exclude_patterns = ["_build", "**/.ipynb_checkpoints", *OFF_THE_SITE]

# pages and notebooks: every run starts from nothing, so that no figure can be older than the code
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
smartquotes_action = "qe"  # two hyphens stay two hyphens: they begin an option
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_render_markdown_format = "myst"
suppress_warnings = ["mystnb.unknown_mime_type"]
pygments_style = "tango"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_here_doc_delimiter = "EOF"

# formulas: one file of MathJax, copied from a package, draws them as SVG without fonts
MATHJAX = "mathjax/tex-svg.js"
mathjax_path = MATHJAX
mathjax3_config = {
    "svg": {"fontCache": "local"},
    "tex": {
        "macros": {
            "E": r"\operatorname{E}",
            "P": r"\operatorname{P}",
            "gap": r"\operatorname{gap}",
            "one": [r"\mathbf{1}[#1]", 1],
        }
    },
    "options": {"enableMenu": False},
}

# the reference
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
maximum_signature_line_length = 72
python_display_short_literal_types = True
add_module_names = False
default_role = "code"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# the look
html_theme = "pydata_sphinx_theme"
html_title = "evenhand"
html_static_path = ["_static"]
html_css_files = ["evenhand.css"]
html_favicon = "_static/mark.svg"
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"index": [], "start": [], "faq": []}
html_context = {
    "default_mode": "auto",
    "versions": json.loads((HERE / "versions.json").read_text(encoding="utf-8")),
}
html_theme_options = {
    "logo": {
        "text": "evenhand",
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
    },
    "navbar_align": "left",
    "navbar_end": ["versions", "theme-switcher"],
    "navbar_persistent": ["search-button"],  # with a field the header takes two lines at 1280 px
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "header_links_before_dropdown": 9,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
    "back_to_top_button": True,
    "show_toc_level": 2,
    "navigation_depth": 2,
    "show_nav_level": 1,
}


def copy_mathjax(app: object, _error: object = None) -> None:
    """Put the one file that draws formulas into the site."""
    found = find_spec("sphinx-mathjax-offline")
    places = [] if found is None else list(found.submodule_search_locations or ())
    if not places:
        raise RuntimeError(
            "formulas need the package sphinx-mathjax-offline. Hint: make docs installs it"
        )
    target = Path(app.outdir) / "_static" / MATHJAX  # type: ignore[attr-defined]
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(Path(places[0]) / "static" / MATHJAX, target)


def skip_foreign(app, what, name, member, skip, options):  # type: ignore[no-untyped-def]
    """Leave out members that a class inherits from other packages: they are documented there."""
    home = getattr(member, "__module__", None) or getattr(
        getattr(member, "fget", None), "__module__", None
    )
    if what in ("class", "exception") and home and not home.startswith("evenhand"):
        return True
    return None


SPECIAL = re.compile(r"(`+.*?`+)|(?<!\\)(\||(?<=\w)_(?!\w))")


def plain_text(app, what, name, obj, options, lines):  # type: ignore[no-untyped-def]
    """Docstrings are plain text with formulas such as |H| and p_-: these are no markup."""
    literal = reference_pages.show_indented(lines)
    code = False
    for number, line in enumerate(lines):
        if number in literal:
            continue
        if line.lstrip().startswith(">>>"):
            code = True
        elif not line.strip():
            code = False
        if not code and not line.startswith("    " * 3):
            lines[number] = SPECIAL.sub(lambda at: at[1] or "\\" + at[2], line)


def plain_signature(app, what, name, obj, options, signature, returned):  # type: ignore[no-untyped-def]
    """A contract is never called, and a default that is made anew has no text of its own."""
    if what == "class" and getattr(obj, "_is_protocol", False):
        return "", returned
    return signature and signature.replace("<factory>", "..."), returned


def breakable_names(app, doctree, docname):  # type: ignore[no-untyped-def]
    """Let names in tables break where a reader would break them, so that tables fit."""
    for table in doctree.findall(nodes.table):
        for literal in list(table.findall(nodes.literal)):
            text = re.sub(r"(?<=\w)([_/.,=(|])(?=\w)", r"\1<wbr>", escape(literal.astext()))
            code = f'<code class="docutils literal notranslate">{text}</code>'
            literal.replace_self(nodes.raw("", code, format="html"))


def copy_service_pages() -> None:
    """Copy the pages of service/docs to service/ of the site."""
    target = HERE / "service"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "service" / "docs", target)


LINK = re.compile(
    r"(?<!!)\[(?P<text>(?:[^\]\[]|\[[^\]]*\])*)\]"  # the text may hold brackets
    r"\((?P<path>[^):#\s]+)(?P<part>#[^)\s]*)?\)"
)


def source_of(docname: str) -> Path:
    """The folder in the repository where a page of the site was written."""
    if docname.startswith("service/"):
        return ROOT / "service" / "docs"
    return (HERE / docname).parent


def link_pages(app, docname, source):  # type: ignore[no-untyped-def]
    """Let links work on the site: those between docs/ and service/docs/ lead to the copies of the
    service's pages; a file that is not on the site is named by its path in the repository.
    """
    here = (HERE / docname).parent

    def on_the_site(found: re.Match[str]) -> str:
        target = (source_of(docname) / found["path"]).resolve()
        if target.is_relative_to(HERE / "api") or not target.exists():
            return found[0]  # written by the build, or Sphinx complains
        if target.is_relative_to(ROOT / "service" / "docs"):
            target = HERE / "service" / target.name
        elif not target.is_relative_to(HERE) or target.relative_to(HERE).parts[0] in OFF_THE_SITE:
            return f"{found['text']} (`{target.relative_to(ROOT)}`)"
        path = os.path.relpath(target, here)
        return f"[{found['text']}]({path}{found['part'] or ''})"

    source[0] = LINK.sub(on_the_site, source[0])


def setup(app):  # type: ignore[no-untyped-def]
    """Write the pages of the reference before Sphinx looks for pages."""
    reference_pages.write(HERE / "api")
    command_pages.write(HERE / "api" / "commands.md")
    copy_service_pages()
    app.connect("source-read", link_pages)
    app.connect("autodoc-process-docstring", plain_text)
    app.connect("autodoc-process-signature", plain_signature)
    app.connect("doctree-resolved", breakable_names)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("build-finished", lambda app, error: None if error else copy_mathjax(app))
