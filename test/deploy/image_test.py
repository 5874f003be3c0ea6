#!/usr/bin/env python3
"""The image of scripts/image: the same bytes every time, nothing in it that should not be, all of it on record, and it
runs in containerd.

    image_test.py BERTH [Image.test_...]      the part with containerd needs root, and is skipped without
"""
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
CONTAINERD = """version = 3
root = "{0}/root"
state = "{0}/state"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime",
                    "io.containerd.grpc.v1.cri"]
[grpc]
  address = "{0}/containerd.sock"
"""
BERTH = ""


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="berth-image-")
        cls.archive = os.path.join(cls.folder.name, "image.tar")
        cls.made(cls.archive)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def made(cls, path, **environment):
        done = subprocess.run([os.path.join(ROOT, "scripts", "image"), BERTH, path], text=True,
                              env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise AssertionError(done.stdout)

    def blob(self, archive, descriptor):
        data = archive.extractfile("./blobs/" + descriptor["digest"].replace(":", "/")).read()
        self.assertEqual("sha256:" + hashlib.sha256(data).hexdigest(), descriptor["digest"])
        self.assertEqual(len(data), descriptor["size"])
        return data

    def test_same_bytes(self):
        again = os.path.join(self.folder.name, "again.tar")
        self.made(again, TZ="Asia/Tokyo", LC_ALL="C.UTF-8", HOME="/nowhere")
        with open(self.archive, "rb") as one, open(again, "rb") as other:
            self.assertEqual(hashlib.sha256(one.read()).digest(), hashlib.sha256(other.read()).digest())
        self.made(again, SOURCE_DATE_EPOCH="86400")
        with open(self.archive, "rb") as one, open(again, "rb") as other:
            self.assertNotEqual(hashlib.sha256(one.read()).digest(), hashlib.sha256(other.read()).digest())

    def test_content(self):
        with tarfile.open(self.archive) as archive:
            index = json.load(archive.extractfile("./index.json"))
            manifest = json.loads(self.blob(archive, index["manifests"][0]))
            config = json.loads(self.blob(archive, manifest["config"]))
            layer = self.blob(archive, manifest["layers"][0])
        self.assertEqual(config["config"]["User"], "65532:65532")
        self.assertEqual(config["config"]["Entrypoint"], ["/usr/bin/berth"])
        with tarfile.open(fileobj=io.BytesIO(layer), mode="r:gz") as tar:
            entries = tar.getmembers()
        names = [e.name for e in entries]
        self.assertEqual(names, sorted(names))
        for entry in entries:
            self.assertEqual((entry.uid, entry.gid, entry.mtime), (0, 0, 0), entry.name)
            self.assertFalse(entry.mode & 0o6000, f"{entry.name} is setuid or setgid")
            self.assertFalse(entry.mode & 0o002 and not entry.issym() and entry.name != "./tmp", entry.name)
        for name in ("./usr/bin/berth", "./etc/ssl/certs/ca-certificates.crt", "./etc/passwd"):
            self.assertIn(name, names)
        self.assertFalse([n for n in names if n.endswith(("/sh", "/bash", "/busybox"))], "there is no shell")

    def test_bill_of_materials(self):
        """Each library of the image is of a package whose version is on record, and the record is of these bytes."""
        with tarfile.open(self.archive) as archive:
            index = json.load(archive.extractfile("./index.json"))
            manifest = json.loads(self.blob(archive, index["manifests"][0]))
            layer = self.blob(archive, manifest["layers"][0])
        with tarfile.open(fileobj=io.BytesIO(layer), mode="r:gz") as tar:
            inside = {e.name: tar.extractfile(e).read() for e in tar.getmembers() if e.isfile()}
        text = inside.pop("./usr/share/berth/sbom.spdx.json")
        with open(self.archive.replace(".tar", ".spdx.json"), "rb") as beside:
            self.assertEqual(beside.read(), text, "the same beside the archive")
        bill = json.loads(text)
        self.assertEqual(bill["spdxVersion"], "SPDX-2.3")
        self.assertEqual(bill["creationInfo"]["created"], "1970-01-01T00:00:00Z")
        packages = {p["SPDXID"]: p for p in bill["packages"]}
        files = {f["SPDXID"]: f for f in bill["files"]}
        self.assertEqual((len(packages), len(files)), (len(bill["packages"]), len(bill["files"])), "ids are unique")
        holders = {}
        for one in bill["relationships"]:
            self.assertIn(one["relatedSpdxElement"], {**packages, **files})
            if one["relationshipType"] == "CONTAINS":
                name = files[one["relatedSpdxElement"]]["fileName"]
                self.assertNotIn(name, holders, "a file is of one package")
                holders[name] = packages[one["spdxElementId"]]
        made_here = {"./etc/passwd", "./etc/group", "./etc/nsswitch.conf", "./etc/os-release"}
        self.assertEqual(set(holders), set(inside) - made_here)
        for entry in files.values():
            sums = {c["algorithm"]: c["checksumValue"] for c in entry["checksums"]}
            self.assertEqual(sums["SHA256"], hashlib.sha256(inside[entry["fileName"]]).hexdigest(), entry["fileName"])
        for name, package in holders.items():
            self.assertRegex(package["versionInfo"], r"^[0-9]", name)
            if package["name"] != "berth":
                purl = package["externalRefs"][0]["referenceLocator"]
                self.assertRegex(purl, r"^pkg:deb/debian/[^@:+]+@[^@:+]+\?arch=(amd64|arm64|all)$")
        libc = [p["name"] for n, p in holders.items() if n.endswith("/libc.so.6")]
        self.assertEqual(libc, ["libc6"])

    @unittest.skipIf(os.getuid() != 0, "needs root")
    def test_runs_in_containerd(self):
        sys.path.insert(0, os.path.join(ROOT, "test", "kubernetes"))
        from cluster import tools
        path = tools("containerd", "containerd-shim-runc-v2", "ctr")
        with tempfile.TemporaryDirectory(prefix="berth-ctr-", dir="/dev/shm") as folder:
            config = os.path.join(folder, "config.toml")
            with open(config, "w", encoding="utf-8") as f:
                f.write(CONTAINERD.format(folder))
            environment = {**os.environ, "PATH": path + os.pathsep + os.environ["PATH"],
                           "CONTAINERD_ADDRESS": os.path.join(folder, "containerd.sock")}
            # Mounts and processes of its own: all of it goes with the first of them.
            command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                       "containerd", "--config", config]
            with open(os.path.join(folder, "log"), "wb") as log:
                server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            try:
                self.in_container(folder, environment, server)
            except AssertionError:
                with open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as f:
                    print("".join(f.readlines()[-20:]), file=sys.stderr)
                raise
            finally:
                server.kill()  # and with it, all in there
                server.wait(30)

    def in_container(self, folder, environment, server):
        def ctr(*arguments, code=0):
            done = subprocess.run(["ctr", *arguments], env=environment, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=300)
            self.assertEqual(done.returncode, code, f"ctr {arguments}: {done.stdout}")
            return done.stdout

        for _ in range(600):
            if os.path.exists(os.path.join(folder, "containerd.sock")):
                break
            self.assertIsNone(server.poll(), "containerd ended")
            threading.Event().wait(0.1)
        out = ctr("images", "import", "--local", "--snapshotter", "native", self.archive)
        with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as f:
            version = f.read().split("project(berth VERSION ")[1].split()[0]
        image = f"localhost/berth:{version}"
        self.assertIn(image, ctr("images", "ls", "-q"), out)
        run = ["run", "--rm", "--snapshotter", "native", "--read-only", image]
        self.assertIn(version, ctr(*run, "one", "/usr/bin/berth", "version", "--client"))
        self.assertIn("no such file", ctr(*run, "two", "/usr/bin/berth", "plan", "-f", "/nowhere", code=20))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    BERTH = os.path.abspath(sys.argv.pop(1))
    unittest.main()
