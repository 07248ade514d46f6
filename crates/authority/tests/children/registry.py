"""Writes what the registries of five package managers serve, as files below a directory: one package `kept` for each."""

import base64, hashlib, io, json, pathlib, sys, tarfile, zipfile

AT = "http://kept.test"


def tar(files):
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return whole.getvalue()


def zipped(files):
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return whole.getvalue()


crate = tar({
    "kept-1.0.0/Cargo.toml": '[package]\nname = "kept"\nversion = "1.0.0"\nedition = "2021"\n',
    "kept-1.0.0/src/lib.rs": "pub fn kept() {}\n",
})
package = tar({"package/package.json": '{"name":"kept","version":"1.0.0"}'})
about = "Metadata-Version: 2.1\nName: kept\nVersion: 1.0.0\n"
wheel = zipped({
    "kept.py": "",
    "kept-1.0.0.dist-info/METADATA": about,
    "kept-1.0.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: kept\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "kept-1.0.0.dist-info/RECORD": "kept.py,,\nkept-1.0.0.dist-info/METADATA,,\nkept-1.0.0.dist-info/WHEEL,,\nkept-1.0.0.dist-info/RECORD,,\n",
})
module = zipped({
    "kept.test/kept@v1.0.0/go.mod": "module kept.test/kept\n",
    "kept.test/kept@v1.0.0/kept.go": "package kept\n\nfunc Kept() {}\n",
})
entry = {"name": "kept", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False}
version = {
    "name": "kept",
    "version": "1.0.0",
    "dist": {
        "tarball": AT + "/npm/kept-1.0.0.tgz",
        "integrity": "sha512-" + base64.b64encode(hashlib.sha512(package).digest()).decode(),
    },
}
parent = "<project><modelVersion>4.0.0</modelVersion><groupId>kept</groupId><artifactId>kept</artifactId><version>1.0.0</version><packaging>pom</packaging></project>"
FILES = {
    "/crates/config.json": json.dumps({"dl": AT + "/crates/dl"}),
    "/crates/ke/pt/kept": json.dumps(entry | {"cksum": hashlib.sha256(crate).hexdigest()}),
    "/crates/dl/kept/1.0.0/download": crate,
    "/npm/kept": json.dumps({"name": "kept", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}),
    "/npm/kept-1.0.0.tgz": package,
    "/simple/kept/": '<!DOCTYPE html><html><body><a href="/kept-1.0.0-py3-none-any.whl">kept</a></body></html>',
    "/kept-1.0.0-py3-none-any.whl": wheel,
    "/go/kept.test/kept/@v/list": "v1.0.0\n",
    "/go/kept.test/kept/@v/v1.0.0.info": '{"Version":"v1.0.0"}',
    "/go/kept.test/kept/@v/v1.0.0.mod": "module kept.test/kept\n",
    "/go/kept.test/kept/@v/v1.0.0.zip": module,
    "/maven/kept/kept/1.0.0/kept-1.0.0.pom": parent,
    "/maven/kept/kept/1.0.0/kept-1.0.0.pom.sha1": hashlib.sha1(parent.encode()).hexdigest(),
}


for name, body in FILES.items():
    path = pathlib.Path(sys.argv[1] + name + ("index.html" if name.endswith("/") else ""))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body.encode() if isinstance(body, str) else body)
