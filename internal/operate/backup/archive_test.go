package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/backup"
)

func object(apiVersion, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetNamespace("team")
	o.SetName(name)
	return o
}

// sample is a backup with one Secret.
func sample() backup.Archive {
	secret := object("v1", "Secret", "a-kubeconfig")
	secret.Object["data"] = map[string]any{"value": "dGhlLWtleS1vZi1h"}
	return backup.Archive{
		Info:    backup.Info{Format: 1, CreatedAt: time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC), Version: "v0.1.0", Clusters: 1, Objects: 3, Secrets: 1},
		Objects: []*unstructured.Unstructured{object("cluster.x-k8s.io/v1beta2", "Cluster", "a"), object("cluster.x-k8s.io/v1beta2", "Machine", "a-1"), secret},
	}
}

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	i, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func written(t *testing.T, a backup.Archive, to ...age.Recipient) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := a.Write(&out, to); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// MV-12: what was written is read again; encrypted Secrets are in the archive for their recipients alone.
func TestArchive(t *testing.T) {
	first, second, other := identity(t), identity(t), identity(t)
	plain, hidden := written(t, sample()), written(t, sample(), first.Recipient(), second.Recipient())
	cases := map[string]struct {
		archive    []byte
		identities []age.Identity
		encrypted  bool
		reason     string
	}{
		"plain":           {archive: plain},
		"plain, with one": {archive: plain, identities: []age.Identity{first}},
		"encrypted":       {archive: hidden, identities: []age.Identity{first}, encrypted: true},
		"for two":         {archive: hidden, identities: []age.Identity{other, second}, encrypted: true},
		"for others":      {archive: hidden, identities: []age.Identity{other}, reason: backup.ReasonEncrypted},
		"no identity":     {archive: hidden, reason: backup.ReasonEncrypted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := backup.Read(bytes.NewReader(tc.archive), tc.identities)
			if reason := reasonOf(err); reason != tc.reason {
				t.Fatalf("reason %q, want %q: %v", reason, tc.reason, err)
			}
			if err != nil {
				return
			}
			want := sample()
			want.Info.Encrypted = tc.encrypted
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	files := unpack(t, hidden)
	for name, data := range files {
		if strings.Contains(string(data), "dGhlLWtleS1vZi1h") || strings.Contains(name, "kubeconfig") {
			t.Errorf("%s tells of the Secret", name)
		}
	}
	if len(unpack(t, plain)) != 5 {
		t.Errorf("files: %v", unpack(t, plain))
	}
}

func reasonOf(err error) string {
	if known := fault.As(err); known != nil {
		return known.Reason
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func unpack(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func pack(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for name, data := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// resum writes the checksums again, as one who changes an archive on purpose would.
func resum(files map[string][]byte) {
	delete(files, "SHA256SUMS")
	text := ""
	for name, data := range files {
		text += fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name)
	}
	files["SHA256SUMS"] = []byte(text)
}

// MV-12: an archive that is not as it was written is refused with what is wrong in it.
func TestDamagedArchive(t *testing.T) {
	whole := written(t, sample())
	const machine = "objects/Machine_team_a-1.yaml"
	cases := map[string]struct {
		change func(map[string][]byte)
		says   string
	}{
		"changed":      {func(f map[string][]byte) { f[machine] = append(f[machine], '\n') }, machine + " is not as it was written"},
		"missing":      {func(f map[string][]byte) { delete(f, machine) }, machine + " is missing"},
		"added":        {func(f map[string][]byte) { f["objects/more.yaml"] = nil }, "objects/more.yaml has no checksum"},
		"no checksums": {func(f map[string][]byte) { delete(f, "SHA256SUMS") }, "it has no SHA256SUMS"},
		"no line":      {func(f map[string][]byte) { f["SHA256SUMS"] = []byte("x\n") }, "SHA256SUMS cannot be read"},
		"one less":     {func(f map[string][]byte) { delete(f, machine); resum(f) }, "it has 2 objects in the place of 3"},
		"no object":    {func(f map[string][]byte) { f[machine] = []byte("a: b"); resum(f) }, machine + " is not an object"},
		"misplaced":    {func(f map[string][]byte) { f[machine] = f["secrets/Secret_team_a-kubeconfig.yaml"]; resum(f) }, "is not where it belongs"},
		"strange":      {func(f map[string][]byte) { f["../../etc/passwd"] = nil; resum(f) }, "does not belong into it"},
		"no info":      {func(f map[string][]byte) { f["backup.json"] = nil; resum(f) }, "backup.json cannot be read"},
		"newer": {func(f map[string][]byte) {
			f["backup.json"] = []byte(`{"format":2,"slipwayVersion":"v9.0.0"}`)
			resum(f)
		}, "slipway v9.0.0 in the format 2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := unpack(t, whole)
			tc.change(files)
			_, err := backup.Read(bytes.NewReader(pack(t, files)), nil)
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "nothing was created") {
				t.Errorf("%v, want %q", err, tc.says)
			}
		})
	}
	for _, n := range []int{0, 1, 10, len(whole) / 2, len(whole) - 9, len(whole) - 1} {
		if _, err := backup.Read(bytes.NewReader(whole[:n]), nil); fault.KindOf(err) != fault.Invalid {
			t.Errorf("cut off after %d of %d bytes: %v", n, len(whole), err)
		}
	}
	for n := range whole {
		broken := bytes.Clone(whole)
		broken[n] ^= 0x10
		got, err := backup.Read(bytes.NewReader(broken), nil)
		// The header of gzip has bytes that say nothing, and two compressed texts may mean the same.
		if err == nil && !cmp.Equal(sample(), got) {
			t.Errorf("byte %d is wrong, and it goes unnoticed", n)
		}
	}
}

// MV-12: the file of a backup is whole or not there, and does not take the place of another.
func TestSave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup.tar.gz")
	saved, err := sample().Save(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || int64(len(data)) != saved.Bytes || fmt.Sprintf("%x", sha256.Sum256(data)) != saved.SHA256 || saved.File != path {
		t.Errorf("%+v of %d bytes: %v", saved, len(data), err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := sample().Save(path, nil); reasonOf(err) != backup.ReasonFile || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a file that exists: %v", err)
	}
	if _, err := sample().Save(filepath.Join(path, "below"), nil); reasonOf(err) != backup.ReasonFile {
		t.Errorf("no directory: %v", err)
	}
	if _, err := backup.Open(path+".not", nil); reasonOf(err) != backup.ReasonFile {
		t.Errorf("no file: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
