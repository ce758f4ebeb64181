package bundle

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoaderForHost(t *testing.T) {
	const libraries = "/lib/x86_64-linux-gnu/"
	loader := []byte("code\x00" + libraries + "\x00/usr" + libraries + "\x00/lib/\x00more\x00/etc/ld.so.cache\x00search cache\x00not use /etc/ld.so.cache\n")
	cases := map[string]struct {
		reason    string
		loader    []byte
		libraries string
		want      []byte
	}{
		"loader":    {"the paths change, and no length does", loader, libraries, []byte("code\x00/var/lib/slipway/lib//\x00/usr" + libraries + "\x00/lib/\x00more\x00/etc/slipway/ldc\x00search cache\x00not use /etc/ld.so.cache\n")},
		"no cache":  {"another loader", []byte("code\x00" + libraries + "\x00/usr" + libraries + "\x00"), libraries, nil},
		"no paths":  {"another loader", []byte("\x00/etc/ld.so.cache\x00"), libraries, nil},
		"too short": {"the path would not fit", []byte("\x00/etc/ld.so.cache\x00/lib/\x00/usr/lib/\x00"), "/lib/", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := loaderForHost(tc.loader, tc.libraries)
			if diff := cmp.Diff(string(tc.want), string(got)); diff != "" || (err == nil) != (tc.want != nil) || err == nil && len(got) != len(tc.loader) {
				t.Errorf("%s: %v %s", tc.reason, err, diff)
			}
		})
	}
}

func TestWithHostLoader(t *testing.T) {
	for _, loader := range []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"} {
		program := []byte("head\x00" + loader + "\x00tail")
		got, err := withHostLoader(program, loader)
		if err != nil || len(got) != len(program) || !bytes.Contains(got, []byte(hostLoader+"\x00")) || !bytes.HasSuffix(got, []byte("tail")) {
			t.Errorf("%s: %q %v", loader, got, err)
		}
	}
	if _, err := withHostLoader([]byte("/lib/ld.so\x00"), "/lib/ld.so"); err == nil {
		t.Error("the path does not fit")
	}
}

// TestCollect collects a program of this machine, if it has a dynamic one.
func TestCollect(t *testing.T) {
	const program, loader = "/bin/cat", "/lib64/ld-linux-x86-64.so.2"
	data, err := os.ReadFile(program)
	if err != nil {
		t.Skip("this machine has no " + program)
	}
	p, isELF, err := inspect(data)
	if err != nil || !isELF || p.loader != loader {
		t.Skipf("%s of this machine has the loader %q", program, p.loader)
	}
	if _, err := os.Stat("/lib/x86_64-linux-gnu/libc.so.6"); err != nil {
		t.Skip("this machine is not Debian")
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	add := func(h tar.Header, data []byte) {
		h.Size, h.Mode = int64(len(data)), 0o755
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	read := func(file string) []byte {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	add(tar.Header{Name: "./lib", Typeflag: tar.TypeSymlink, Linkname: "usr/lib"}, nil)
	add(tar.Header{Name: "./lib64", Typeflag: tar.TypeSymlink, Linkname: "usr/lib64"}, nil)
	add(tar.Header{Name: "./usr/lib64/ld-linux-x86-64.so.2", Typeflag: tar.TypeSymlink, Linkname: "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"}, nil)
	add(tar.Header{Name: "./usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", Typeflag: tar.TypeReg}, read(loader))
	add(tar.Header{Name: "./usr/lib/x86_64-linux-gnu/libc.so.6", Typeflag: tar.TypeReg}, read("/lib/x86_64-linux-gnu/libc.so.6"))
	add(tar.Header{Name: "./usr/bin/cat", Typeflag: tar.TypeReg}, data)
	file := filepath.Join(t.TempDir(), "userland.tar")
	if err := os.WriteFile(file, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := openUserland(file)
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	c := &collector{from: u, files: map[string][]byte{}}
	if err := c.addFile("bin/cat", "/usr/bin/cat"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bin/cat", "lib/ld.so", "lib/libc.so.6"} {
		if len(c.files[name]) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
	if p, _, err := inspect(c.files["bin/cat"]); err != nil || p.loader != hostLoader {
		t.Errorf("the program has the loader %q, %v", p.loader, err)
	}
	if len(c.files) != 3 {
		t.Errorf("%d files", len(c.files))
	}
}

func TestResolve(t *testing.T) {
	u := &userland{entries: map[string]userlandEntry{"/lib": {link: "usr/lib"}, "/usr/lib/a": {link: "../share/b"}, "/loop": {link: "/loop"}, "/x": {link: "/lib/a"}}}
	for from, want := range map[string]string{"/lib/c": "/usr/lib/c", "/lib/a": "/usr/share/b", "/x": "/usr/share/b", "x/y": "/usr/share/b/y"} {
		if got, err := u.resolve(from); got != want || err != nil {
			t.Errorf("%s: %s instead of %s, %v", from, got, want, err)
		}
	}
	if _, err := u.resolve("/loop"); err == nil {
		t.Error("a loop must end")
	}
}
