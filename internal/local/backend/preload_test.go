package backend

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/fault"
)

var demo = types.NamespacedName{Namespace: "ns", Name: "demo"}

func keep(t *testing.T, a ImageArchives, cluster types.NamespacedName, name, content string) string {
	t.Helper()
	file, err := a.Store(cluster, name, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func contents(t *testing.T, a ImageArchives, cluster types.NamespacedName) (out []string) {
	t.Helper()
	files, err := a.ForCluster(cluster)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

func TestArchives(t *testing.T) {
	a := ImageArchives{Dir: filepath.Join(t.TempDir(), "images")}
	if got := contents(t, a, demo); got != nil {
		t.Errorf("before: %v", got)
	}
	first := keep(t, a, demo, "web:1", "one")
	keep(t, a, demo, "../db:2", "two")
	keep(t, a, types.NamespacedName{Namespace: "ns", Name: "other"}, "web:1", "another cluster's")
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(first, past, past); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one", "two"}, contents(t, a, demo)); diff != "" {
		t.Errorf("in the order in which they were kept (-want +got):\n%s", diff)
	}
	if again := keep(t, a, demo, "web:1", "one, newer"); again != first {
		t.Errorf("%s is kept beside %s", again, first)
	}
	if diff := cmp.Diff([]string{"two", "one, newer"}, contents(t, a, demo)); diff != "" {
		t.Errorf("replaced, and the last now (-want +got):\n%s", diff)
	}
	if _, err := a.Store(demo, "cut off", io.MultiReader(strings.NewReader("a part"), broken{})); !errors.Is(err, errBroken) {
		t.Errorf("half an archive: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(first)); err != nil || len(entries) != 2 {
		t.Errorf("something is left of half an archive: %v, %v", entries, err)
	}
	for _, o := range []types.NamespacedName{{}, {Namespace: "ns"}, {Namespace: "ns", Name: ".."}, {Namespace: "ns", Name: "a/b"}, {Namespace: "..", Name: "demo"}} {
		if _, err := a.Store(o, "web:1", strings.NewReader("x")); err == nil {
			t.Errorf("an archive is kept for %s", o)
		}
		if files, err := a.ForCluster(o); files != nil || err != nil {
			t.Errorf("%s has %v, %v", o, files, err)
		}
		if err := a.Delete(o); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(a.Delete(demo), a.Delete(demo)); err != nil || contents(t, a, demo) != nil {
		t.Errorf("forgotten: %v, %v", err, contents(t, a, demo))
	}
	if len(contents(t, a, types.NamespacedName{Namespace: "ns", Name: "other"})) != 1 {
		t.Error("another cluster's went with it")
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

// host is a backend with one machine that does what it is told to, and notes it.
type host struct {
	Networks
	did  []string
	fail string
}

func (h *host) do(what string) error {
	h.did = append(h.did, what)
	if h.fail == what {
		return fault.New(fault.Invalid, "Boom", "It is full")
	}
	return nil
}

func (h *host) Bootstrap(context.Context, Ref, Script) error {
	return h.do("bootstrap")
}

func (h *host) Progress(context.Context, Ref) (Progress, error) {
	return Progress{}, nil
}

func (h *host) DeleteNetwork(context.Context, Ref) error { return h.do("delete network") }

func (h *host) Run(context.Context, Ref, string, []byte) (string, error) {
	return "", h.do("await")
}

func (h *host) LoadImages(_ context.Context, _ Ref, archive io.Reader) (string, error) {
	text, err := io.ReadAll(archive)
	return "", errors.Join(err, h.do("load "+string(text)))
}

func TestAround(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		cluster string
		fail    string
		want    []string
	}{
		"loaded":           {"before the script, the oldest first", "demo", "", []string{"await", "load one", "load two", "bootstrap"}},
		"another cluster":  {"has none, and does not wait", "other", "", []string{"bootstrap"}},
		"no cluster":       {"", "", "", []string{"bootstrap"}},
		"no runtime":       {"the script waits", "demo", "await", []string{"await"}},
		"cannot be loaded": {"the script waits", "demo", "load one", []string{"await", "load one"}},
	} {
		a := ImageArchives{Dir: t.TempDir()}
		past := time.Now().Add(-time.Hour)
		if err := os.Chtimes(keep(t, a, demo, "web:1", "one"), past, past); err != nil {
			t.Fatal(err)
		}
		keep(t, a, demo, "db:2", "two")
		h := &host{fail: c.fail}
		b := WrapPreloading(Backend{Scripts: h, Networks: h}, a, h)
		ref := Ref{Object: types.NamespacedName{Namespace: "ns", Name: "m"}, Name: "slipway-ns-m", Cluster: c.cluster}
		err := b.Scripts.Bootstrap(t.Context(), ref, Script{})
		if diff := cmp.Diff(c.want, h.did); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, diff)
		}
		const failed = "The preloaded images of Cluster ns/demo could not be loaded into slipway-ns-m: It is full; retrying"
		if c.fail == "" && err != nil || c.fail != "" && (fault.KindOf(err) != fault.Transient || fault.UserMessage(err) != failed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The incomplete archives of processes that were killed are deleted, those of running processes are not.
func TestOldPartialArchivesAreDeleted(t *testing.T) {
	a := ImageArchives{Dir: t.TempDir()}
	folder := filepath.Dir(keep(t, a, demo, "web:1", "one"))
	for name, age := range map[string]time.Duration{".tar.old": 25 * time.Hour, ".tar.new": 23 * time.Hour} {
		at, file := time.Now().Add(-age), filepath.Join(folder, name)
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	keep(t, a, demo, "web:1", "two")
	if left, err := filepath.Glob(filepath.Join(folder, ".tar.*")); err != nil || len(left) != 1 || filepath.Base(left[0]) != ".tar.new" {
		t.Errorf("%v, %v", left, err)
	}
}

func TestForgottenWithTheNetwork(t *testing.T) {
	a := ImageArchives{Dir: t.TempDir()}
	keep(t, a, demo, "web:1", "one")
	h := &host{fail: "delete network"}
	networks := WrapPreloading(Backend{Scripts: h, Networks: h}, a, h).Networks
	ref := Ref{Object: types.NamespacedName{Namespace: "ns", Name: "net"}, Cluster: "demo"}
	if err := networks.DeleteNetwork(t.Context(), ref); err == nil || len(contents(t, a, demo)) != 1 {
		t.Errorf("the network is still there: %v, %v", err, contents(t, a, demo))
	}
	h.fail = ""
	if err := networks.DeleteNetwork(t.Context(), ref); err != nil || len(contents(t, a, demo)) != 0 {
		t.Errorf("%v, %v", err, contents(t, a, demo))
	}
}
