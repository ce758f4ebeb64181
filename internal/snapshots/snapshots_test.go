package snapshots_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

var (
	demo = snapshots.Cluster{Namespace: "team-a", Name: "demo", UID: "u-1"}
	noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
)

// data is a source of a snapshot that has these bytes, and may end too early.
type data struct {
	content []byte
	broken  error
}

func (d data) ReadState(context.Context) (snapshots.EtcdState, error) {
	return snapshots.EtcdState{Revision: 42, Etcd: "3.6.8", Kubernetes: "v1.36.3"}, nil
}

func (d data) Snapshot(context.Context) (io.ReadCloser, error) {
	r := io.Reader(bytes.NewReader(d.content))
	if d.broken != nil {
		r = io.MultiReader(r, broken{d.broken})
	}
	return io.NopCloser(r), nil
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// stores are the kinds of stores, each empty, with what reads and changes a file behind its back.
func stores(t *testing.T) map[string]snapshots.Store {
	t.Helper()
	return map[string]snapshots.Store{"folder": snapshots.NewFolder(filepath.Join(t.TempDir(), "snapshots"), 0), "s3": s3(t, nil)}
}

const key, secret = "AKID", "the-secret"

// s3 is a store on a server of this test. What is in front of it may answer itself.
func s3(t *testing.T, front func(http.ResponseWriter, *http.Request) bool) snapshots.Store {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("backups"); err != nil {
		t.Fatal(err)
	}
	behind := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential="+key+"/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if front == nil || !front(w, r) {
			behind.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return connect(t, server, key)
}

func connect(t *testing.T, to *httptest.Server, key string) snapshots.Store {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: to.Certificate().Raw})
	s, err := snapshots.NewS3(snapshots.S3Config{Endpoint: strings.TrimPrefix(to.URL, "https://"), CA: ca, Bucket: "backups", Prefix: "etcd/of", AccessKeyID: key, SecretAccessKey: secret})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func take(t *testing.T, to snapshots.Store, at time.Time, content []byte, recipients ...string) (snapshots.Manifest, error) {
	t.Helper()
	return snapshots.Take(t.Context(), data{content: content}, to, snapshots.TakeOptions{Cluster: demo, Name: snapshots.Name("demo", at), Now: at, Recipients: recipients})
}

func names(t *testing.T, s snapshots.Store) []string {
	t.Helper()
	files, err := s.List(t.Context(), "team-a/demo")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		out = append(out, f.Name)
	}
	return out
}

// A snapshot comes back as it was, plain and encrypted, small and of several parts, and is removed.
func TestTakeAndFetch(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for kind, s := range stores(t) {
		for name, test := range map[string]struct {
			content    []byte
			recipients []string
		}{
			"plain":                      {content: []byte("a database")},
			"encrypted":                  {content: []byte("a database"), recipients: []string{identity.Recipient().String()}},
			"of several parts":           {content: bytes.Repeat([]byte("0123456789abcdef"), 17<<20/16)},
			"encrypted of several parts": {content: bytes.Repeat([]byte("0123456789abcdef"), 17<<20/16), recipients: []string{identity.Recipient().String()}},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				made, err := take(t, s, noon, test.content, test.recipients...)
				if err != nil {
					t.Fatal(err)
				}
				listed, err := snapshots.List(t.Context(), s, demo)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]snapshots.Manifest{made}, listed); diff != "" {
					t.Errorf("listed (-want +got):\n%s", diff)
				}
				to := filepath.Join(t.TempDir(), "got.db")
				if err := snapshots.Fetch(t.Context(), s, made, to, []byte(identity.String())); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, test.content) {
					t.Errorf("fetched %d bytes, want %d: %v", len(got), len(test.content), err)
				}
				if err := snapshots.Remove(t.Context(), s, made); err != nil {
					t.Fatal(err)
				}
				if left := names(t, s); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		}
	}
}

// What is encrypted has nothing of the content in it, and only its identity reads it.
func TestEncrypted(t *testing.T) {
	identity, _ := age.GenerateX25519Identity()
	other, _ := age.GenerateX25519Identity()
	dir := t.TempDir()
	s := snapshots.NewFolder(dir, 0)
	made, err := take(t, s, noon, []byte("a password of a tenant"), identity.Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "team-a", "demo", made.Name+".db.age"))
	if err != nil || bytes.Contains(text, []byte("password")) {
		t.Errorf("stored: %v, %q", err, text)
	}
	for name, test := range map[string]struct{ identity, want string }{
		"none":    {"", "name a Secret with an identity"},
		"another": {other.String(), "cannot be decrypted with the identity"},
		"no key":  {"AGE-SECRET-KEY-1NONSENSE", "contains no age identity"},
	} {
		err := snapshots.Fetch(t.Context(), s, made, filepath.Join(t.TempDir(), "x"), []byte(test.identity))
		if fault.As(err) == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "NONSENSE") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := take(t, s, noon, []byte("x"), "age1nonsense"); err == nil || !strings.Contains(err.Error(), "age-keygen") {
		t.Errorf("recipient: %v", err)
	}
}

// A source that ends too early leaves no snapshot, neither plain nor encrypted.
func TestInterrupted(t *testing.T) {
	identity, _ := age.GenerateX25519Identity()
	for kind, s := range stores(t) {
		for _, recipients := range [][]string{nil, {identity.Recipient().String()}} {
			_, err := snapshots.Take(t.Context(), data{content: []byte("half"), broken: errors.New("connection lost")}, s,
				snapshots.TakeOptions{Cluster: demo, Name: snapshots.Name("demo", noon), Now: noon, Recipients: recipients})
			if err == nil {
				t.Errorf("%s: half a snapshot counts", kind)
			}
			if left := names(t, s); len(left) > 0 {
				t.Errorf("%s: left %v", kind, left)
			}
		}
		if _, err := take(t, s, noon, nil); err == nil {
			t.Errorf("%s: an empty snapshot counts", kind)
		}
	}
}

// What is changed behind our back is found, and never restored.
func TestDamaged(t *testing.T) {
	for kind, s := range stores(t) {
		for name, content := range map[string]string{"another byte": "a databasf", "shorter": "a datab", "longer": "a database and more"} {
			made, err := take(t, s, noon, []byte("a database"))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Write(t.Context(), "team-a/demo/"+made.Name+".db", strings.NewReader(content), 100); err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(t.TempDir(), "x")
			if err := snapshots.Fetch(t.Context(), s, made, to, nil); fault.As(err) == nil || fault.As(err).Reason != snapshots.ReasonDamaged {
				t.Errorf("%s, %s: %v", kind, name, err)
			}
			if _, err := os.Stat(to); !os.IsNotExist(err) {
				t.Errorf("%s, %s: the file is there", kind, name)
			}
		}
		for _, text := range []string{"{", `{"format":2,"name":"demo-20261125T120000Z","cluster":{"namespace":"team-a","name":"demo"},"bytes":1,"sha256":"` + strings.Repeat("0", 64) + `"}`,
			`{"format":1,"name":"demo-20261125T120000Z","cluster":{"namespace":"team-b","name":"demo"},"bytes":1}`} {
			if err := s.Write(t.Context(), "team-a/demo/demo-20261125T120000Z.json", strings.NewReader(text), 1000); err != nil {
				t.Fatal(err)
			}
			if list, err := snapshots.List(t.Context(), s, demo); err != nil || len(list) > 0 {
				t.Errorf("%s: %s counts: %v, %v", kind, text, list, err)
			}
		}
	}
}

// Interrupted snapshots are removed later, those that may be under way and those that are whole are not.
func TestTidy(t *testing.T) {
	for kind, s := range stores(t) {
		made, err := take(t, s, noon, []byte("whole"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Write(t.Context(), "team-a/demo/demo-20261125T130000Z.db", strings.NewReader("half"), 10); err != nil {
			t.Fatal(err)
		}
		if err := s.Write(t.Context(), "team-a/demo/notes.txt", strings.NewReader("not ours"), 10); err != nil {
			t.Fatal(err)
		}
		if err := snapshots.Tidy(t.Context(), s, demo, time.Now().Add(-time.Hour)); err != nil || len(names(t, s)) != 4 {
			t.Errorf("%s: %v, left %v", kind, err, names(t, s))
		}
		if err := snapshots.Tidy(t.Context(), s, demo, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		want := []string{"team-a/demo/" + made.Name + ".db", "team-a/demo/" + made.Name + ".json", "team-a/demo/notes.txt"}
		if diff := cmp.Diff(want, names(t, s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

// What is left in a folder by a crash in the middle of a file is removed, and is never listed.
func TestPartialFile(t *testing.T) {
	dir := t.TempDir()
	s := snapshots.NewFolder(dir, 0)
	left := filepath.Join(dir, "team-a", "demo", ".partial-demo-20261125T120000Z.db")
	if err := errors.Join(os.MkdirAll(filepath.Dir(left), 0o700), os.WriteFile(left, []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := names(t, s); len(got) > 0 {
		t.Errorf("listed: %v", got)
	}
	if err := snapshots.Tidy(t.Context(), s, demo, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// A folder that is full, by the disk or by what a namespace may have, takes nothing and says what to do.
func TestFull(t *testing.T) {
	s := snapshots.NewFolder(t.TempDir(), 1000)
	first, err := take(t, s, noon, bytes.Repeat([]byte("x"), 500))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := take(t, s, noon.Add(time.Hour), bytes.Repeat([]byte("x"), 400)); fault.As(err) == nil || fault.As(err).Reason != "SnapshotStoreFull" ||
		!strings.Contains(err.Error(), "snapshots.namespaceMiB") {
		t.Errorf("quota: %v", err)
	}
	if list, err := snapshots.List(t.Context(), s, demo); err != nil || len(list) != 1 || list[0].Name != first.Name {
		t.Errorf("the first is still there: %v, %v", list, err)
	}
	if got := names(t, s); len(got) != 2 {
		t.Errorf("left: %v", got)
	}
	full := data{content: []byte("x"), broken: &os.PathError{Op: "write", Path: "/some/where", Err: syscall.ENOSPC}}
	_, err = snapshots.Take(t.Context(), full, snapshots.NewFolder(t.TempDir(), 0), snapshots.TakeOptions{Cluster: demo, Name: snapshots.Name("demo", noon), Now: noon})
	if fault.As(err) == nil || fault.As(err).Reason != "SnapshotStoreFull" || strings.Contains(fault.UserMessage(err), "/some/where") {
		t.Errorf("disk: %v", err)
	}
}

// What an S3-compatible store refuses, or does not do, is said as what to do about it.
func TestS3Refusals(t *testing.T) {
	answer := func(status int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(status); return true }
	}
	for name, test := range map[string]struct {
		store  func(t *testing.T) snapshots.Store
		reason string
		says   string
	}{
		"no such bucket": {func(t *testing.T) snapshots.Store {
			return s3(t, func(w http.ResponseWriter, r *http.Request) bool {
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, "<Error><Code>NoSuchBucket</Code><Message>internal secrets</Message></Error>")
				return true
			})
		}, "SnapshotStoreRefused", "create it"},
		"forbidden": {func(t *testing.T) snapshots.Store { return s3(t, answer(http.StatusForbidden)) }, "SnapshotStoreRefused", "refuses the keys"},
		"full":      {func(t *testing.T) snapshots.Store { return s3(t, answer(http.StatusInsufficientStorage)) }, "SnapshotStoreFull", "is full"},
		"redirect": {func(t *testing.T) snapshots.Store {
			return s3(t, func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(http.StatusTemporaryRedirect)
				return true
			})
		}, "SnapshotStoreRefused", "another address"},
		"truncated": {func(t *testing.T) snapshots.Store {
			return s3(t, func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPut {
					return false
				}
				connection, _, err := w.(http.Hijacker).Hijack()
				if err == nil {
					_ = connection.Close()
				}
				return true
			})
		}, "SnapshotStoreUnreachable", "does not respond"},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.store(t)
			_, err := take(t, s, noon, []byte("a database"))
			if fault.As(err) == nil || fault.As(err).Reason != test.reason || !strings.Contains(fault.UserMessage(err), test.says) || strings.Contains(fault.UserMessage(err), "internal") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("wrong keys", func(t *testing.T) {
		front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
		defer front.Close()
		if _, err := snapshots.List(t.Context(), connect(t, front, "OTHER"), demo); fault.As(err) == nil || fault.As(err).Reason != "SnapshotStoreRefused" {
			t.Errorf("got %v", err)
		}
		if _, err := snapshots.NewS3(snapshots.S3Config{Endpoint: "127.0.0.1:1", Bucket: "b"}); err == nil || !strings.Contains(err.Error(), "accessKeyID") {
			t.Errorf("no keys: %v", err)
		}
	})
}

// Names lead nowhere but into the folder, nor do symbolic links in it.
func TestNamesStayInside(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "team-a")); err != nil {
		t.Fatal(err)
	}
	for kind, s := range map[string]snapshots.Store{"folder": snapshots.NewFolder(dir, 0), "s3": s3(t, nil)} {
		for _, name := range []string{"../x", "/x", "a/../../x", "", "a//b"} {
			if err := s.Write(t.Context(), name, strings.NewReader("x"), 10); err == nil {
				t.Errorf("%s writes %q", kind, name)
			}
			if _, err := s.Read(t.Context(), name); err == nil {
				t.Errorf("%s reads %q", kind, name)
			}
		}
	}
	if _, err := take(t, snapshots.NewFolder(dir, 0), noon, []byte("x")); err == nil {
		t.Error("a symbolic link is followed")
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside: %v, %v", left, err)
	}
	for name, ok := range map[string]bool{
		"demo-20261125T120000Z": true, "a.b-c-20261125T120000Z": true, "../demo-20261125T120000Z": false, "demo/x-20261125T120000Z": false,
		"demo-20261325T120000Z": false, "demo": false, "-20261125T120000Z": false,
	} {
		if _, _, got := snapshots.ParseName(name); got != ok {
			t.Errorf("%q: %t", name, got)
		}
	}
}
