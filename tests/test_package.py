"""What is published says the same everywhere."""

import ast
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import evenhand

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def test_one_version_everywhere():
    version = PROJECT["version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    assert recipe["context"]["version"] == version
    assert f"## [{version}] - " in (ROOT / "CHANGELOG.md").read_text()
    pages = json.loads((ROOT / "docs/versions.json").read_text(encoding="utf-8"))
    (current,) = (page["name"] for page in pages if page["current"])
    assert current.split()[0] == version.rpartition(".")[0]  # pages are of a minor version
    assert evenhand.__version__ == version


def test_the_recipe_asks_for_what_the_project_asks_for():
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    asked = {one.replace(" ", "") for one in recipe["requirements"]["run"]}
    assert asked - {f"python{PROJECT['requires-python']}"} == set(PROJECT["dependencies"])


def test_the_changelog_has_a_date_for_every_version():
    for version, rest in re.findall(
        r"^## \[(.*?)\](.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M
    ):
        assert version == "Unreleased" or re.fullmatch(r" - \d{4}-\d\d-\d\d", rest), version


def test_the_changelog_of_the_first_release_is_short():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = text.split("## [0.1.0]", 1)[1].split("\n## ", 1)[0]
    assert len([line for line in first.splitlines() if line]) <= 20


def installed_with(extra: str) -> set[str]:
    """The distributions that `make` installs for an extra, with all that these ask for."""
    found: set[tuple[str, str]] = set()
    open_ = [Requirement(f"evenhand[{extra}]"), Requirement(f"evenhand-service[{extra}]")]
    while open_:
        asked = open_.pop()
        for chosen in {"", *asked.extras}:
            key = (canonicalize_name(asked.name), chosen)
            if key in found:
                continue
            found.add(key)
            for text in asks_for(key[0]):
                one = Requirement(text)
                if one.marker is None or one.marker.evaluate({"extra": chosen}):
                    open_.append(one)
    return {name for name, _ in found}


def asks_for(distribution: str) -> list[str]:
    """The requirements of a distribution; of those here as the files say, not as installed."""
    here = {"evenhand": "pyproject.toml", "evenhand-service": "service/pyproject.toml"}
    if distribution not in here:
        try:
            return importlib.metadata.requires(distribution) or []
        except importlib.metadata.PackageNotFoundError:
            return []  # for another platform
    project = tomllib.loads((ROOT / here[distribution]).read_text())["project"]
    optional = project["optional-dependencies"].items()
    extras = [f"{one} ; extra == '{name}'" for name, asked in optional for one in asked]
    return [*project["dependencies"], *extras]


def foreign_imports(path: Path) -> set[str]:
    """The distributions that a file imports when it is read."""
    modules: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            modules |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module)
    tops = {module.split(".")[0] for module in modules} - sys.stdlib_module_names
    called = {"sklearn": "scikit-learn", "yaml": "pyyaml"}
    return {canonicalize_name(called.get(one, one)) for one in tops - {"tests", "service"}}


def test_make_check_installs_what_its_tests_import():
    """In a new checkout there is nothing else, and one file that cannot be read ends the run."""
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    (core,) = re.findall(r"^CORE\s*:=(.*)$", text, re.M)
    places = [ROOT / place for place in core.split()]
    files = [file for one in places for file in ([one] if one.is_file() else one.rglob("*.py"))]
    small = installed_with("check")
    assert {"numpy", "pytest", "pandas", "fastapi"} <= small
    assert not {"polars", "matplotlib"} & small
    wrong = {
        f"{file.relative_to(ROOT)}: {lacking}"
        for file in files
        if (lacking := foreign_imports(file) - small)
    }
    assert len(files) > 50
    assert not wrong


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_what_there_is(path):
    """Every make target and every script that a workflow calls exists; no token is stored."""
    text = path.read_text()
    workflow = yaml.safe_load(text)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            for words in re.findall(r"make ([a-z-]+)", step.get("run", "")):
                assert words in targets
            for script in re.findall(r"scripts/\S+", step.get("run", "")):
                assert (ROOT / script).exists()
    assert "secrets." not in text
    matrix = workflow["jobs"].get("test", {}).get("strategy", {}).get("matrix", {})
    declared = [word[-4:] for word in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", word)]
    assert set(declared) <= set(matrix.get("python", declared))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path):
    """A tag can be moved; a commit cannot. The comment says which version it is."""
    used = re.findall(r"uses: (.*)", path.read_text())
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v[\d.]+", one)] == []


def test_issue_forms_are_forms():
    for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text())
        if path.name != "config.yml":
            assert {"name", "description", "body"} <= set(form)


def test_what_is_imported_is_declared():
    """Every package that the source imports is a dependency of the core or of an extra."""
    names = {"sklearn": "scikit-learn", "prometheus_client": "prometheus-client"}
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    declared = {
        re.split(r"[><=\[ ]", one)[0].replace("_", "-") for group in groups for one in group
    }
    imported = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.split(".")[0])
    imported = {names.get(name, name) for name in imported}
    typing_only = {"_typeshed"}  # known to type checkers alone
    foreign = imported - set(sys.stdlib_module_names) - {"evenhand", "__future__"} - typing_only
    assert {name.replace("_", "-") for name in foreign} <= declared | OPTIONAL


OPTIONAL = {"xgboost", "catboost", "IPython"}
"""Used only where they are installed; nothing asks for them."""

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_opens_with_what_a_newcomer_wants():
    """What it is, the picture, the commands of a checkout, ten lines with what they print, the
    price, when not to use it, the paper, a comparison, links: in order.
    """
    order = ["evenhand is", "![", "    make demo", "    pip install", "```python", "```text"]
    order += ["what it costs", "When not", "## The paper", "## Compared", "## Links"]
    places = [README.index(word) for word in order]
    assert places == sorted(places)


def test_nobody_is_told_to_ask_an_index_for_a_name_that_is_not_ours_yet():
    asked = re.compile(r"(pip|uv|pipx) (install|add) '?evenhand")
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]
    told = {path: path.read_text(encoding="utf-8") for path in files}
    told[ROOT / "README.md"] = README
    assert [str(path) for path, text in told.items() if asked.search(text)] == []
    assert asked.search("pip install 'evenhand[plots]'")


def test_every_file_that_the_readme_links_to_exists():
    for target in re.findall(r"\]\(([^)#\s]+)", README):
        assert "://" in target or (ROOT / target).exists(), target


def hook():
    pytest.importorskip("hatchling", reason="the metadata are written with hatchling's help")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Targets(HTMLParser):
    """What the links and pictures of a page point to."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found += [(tag, value) for name, value in attrs if name in ("href", "src")]


ADDRESSES = {
    "Homepage": "https://x.test",
    "Documentation": "https://x.test/d",
    "Source": "https://x.test/s",
    "Issues": "https://x.test/i",
    "Changelog": "https://x.test/c",
}
"""As they could be set at publication."""


def rendered(urls):
    """What the links and pictures of the README point to on an index, by its own renderer."""
    markdown = pytest.importorskip("readme_renderer.markdown", reason="shows what an index shows")
    page = markdown.render(hook().on_an_index(README, urls, PROJECT["version"]))
    return [(tag, value) for tag, value in Targets(page).found if not value.startswith("#")]


def test_the_readme_works_on_an_index():
    found = rendered(ADDRESSES)
    assert len(found) > 15
    assert [value for tag, value in found if tag == "img"] == [
        f"https://x.test/s/raw/v{PROJECT['version']}/docs/picture.png"
    ]
    assert [value for _, value in found if not value.startswith("https://x.test")] == []


def test_without_addresses_the_readme_has_no_links_on_an_index():
    assert rendered({}) == []


def test_no_address_is_made_up():
    """There is none until the first release, and the release workflow refuses to run without."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), *ROOT.glob("*.cff"), *WORKFLOWS]
    files += [ROOT / "service/pyproject.toml", *(ROOT / "docs").rglob("*.md")]
    assert [str(path) for path in files if ".invalid" in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize(
    ("urls", "missing"),
    [
        ({}, "Homepage"),
        (ADDRESSES | {"Source": "https://evenhand.invalid"}, "Source"),
        (ADDRESSES | {"Issues": "evenhand.org"}, "Issues"),
    ],
)
def test_a_release_needs_addresses(urls, missing):
    module = script("check_addresses")
    assert module.wrong(ADDRESSES) == []
    assert any(missing in fault for fault in module.wrong(urls))
    release = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert release.index("scripts/check_addresses.py") < release.index("make package")


@pytest.mark.parametrize(
    ("wrong", "missing"),
    [
        ({"service/pyproject.toml": "[project]"}, "service/pyproject.toml"),
        ({"pyproject.toml": "[project]", "service/pyproject.toml": "[project]"}, "Homepage"),
        ({"SECURITY.md": "Write to security at our domain."}, "SECURITY.md"),
    ],
)
def test_a_release_needs_the_addresses_of_both_packages_and_a_contact(tmp_path, wrong, missing):
    urls = "\n".join(["[project.urls]", *(f'{key} = "{url}"' for key, url in ADDRESSES.items())])
    good = {"pyproject.toml": urls, "service/pyproject.toml": urls}
    good["SECURITY.md"] = "Write to <security@x.test>."
    (tmp_path / "service").mkdir()
    faults = []
    for files in (good, wrong):
        for name, text in files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        faults.append(script("check_addresses").all_wrong(tmp_path))
    assert faults[0] == []
    assert any(missing in fault for fault in faults[1])


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"scripts/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_release_has_hashes_and_an_sbom_and_publishes_what_was_tested():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    build = [step.get("run", "") for step in jobs["build"]["steps"]]
    assert build.index("make package") < build.index("python scripts/describe_release.py")
    publish = [step.get("run", step.get("uses", "")) for step in jobs["publish"]["steps"]]
    checked = publish.index("cd dist && sha256sum --check --strict ../release/SHA256SUMS")
    assert checked < [step.startswith("pypa/") for step in publish].index(True)


def test_a_release_is_refused_if_its_tag_is_not_its_version():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    build = [step.get("run", "") for step in jobs["build"]["steps"]]
    (step,) = (run for run in build if "GITHUB_REF_NAME" in run)
    assert build.index(step) < build.index("make package")
    for tag, refused in ((f"v{PROJECT['version']}", False), ("v0.0.9", True)):
        environ = {**os.environ, "GITHUB_REF_NAME": tag}
        ended = subprocess.run(["bash", "-e", "-c", step], cwd=ROOT, env=environ, check=False)
        assert bool(ended.returncode) == refused


def test_hashes_are_those_that_sha256sum_reads(tmp_path):
    (tmp_path / "a-1.whl").write_bytes(b"abc")
    (tmp_path / "SHA256SUMS").write_text("not hashed itself")
    # the test vector of FIPS 180-2
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert script("describe_release").sums(tmp_path) == f"{known}  a-1.whl\n"
    with pytest.raises(SystemExit, match="make package"):
        script("describe_release").sums(tmp_path / "..")


def test_an_sbom_says_nothing_of_the_machine_that_wrote_it(tmp_path):
    def part(name, *urls):
        return {"bom-ref": name, "name": name, "externalReferences": [{"url": u} for u in urls]}

    bom = {
        "metadata": {"component": part("evenhand", f"file://{tmp_path}/a.whl")},
        "components": [part("pip"), part("numpy", "https://numpy.org")],
        "dependencies": [{"ref": "pip"}, {"ref": "evenhand", "dependsOn": ["numpy", "pip"]}],
    }
    clean = script("describe_release").without_this_machine(bom, tmp_path)
    assert clean["metadata"]["component"]["externalReferences"] == []
    assert [one["name"] for one in clean["components"]] == ["numpy"]
    assert clean["dependencies"] == [{"ref": "evenhand", "dependsOn": ["numpy"]}]
    bom["components"][0]["description"] = f"built in {tmp_path}"
    with pytest.raises(SystemExit, match="names"):
        script("describe_release").without_this_machine(bom, tmp_path)


def test_the_newest_versions_are_tried_weekly_and_the_pages_deployed_with_a_release():
    newest, docs = (
        yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text())
        for name in ("newest", "docs")
    )
    (schedule,) = newest[True]["schedule"]  # YAML 1.1 reads the key `on` as true
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", schedule["cron"])
    assert newest["jobs"]["newest"]["steps"][-1]["run"] == "make test-newest"
    assert "make docs" in [step.get("run") for step in docs["jobs"]["build"]["steps"]]
    assert docs["jobs"]["deploy"]["needs"] == "build"
    assert "refs/tags/v" in docs["jobs"]["deploy"]["if"]
    assert docs["permissions"] == {"contents": "read"}


def test_only_links_into_the_checkout_are_rewritten():
    urls = {"Source": "https://x.test/s", "Documentation": "https://x.test/d"}
    seen = hook().on_an_index(
        "[a](docs/faq.md#what) [b](LICENSE) ![c](docs/p.png) [d](https://e.test) [f](#here)",
        urls,
        "1.2",
    )
    assert seen == (
        "[a](https://x.test/d/faq.html#what) [b](https://x.test/s/blob/v1.2/LICENSE) "
        "![c](https://x.test/s/raw/v1.2/docs/p.png) [d](https://e.test) [f](#here)"
    )
