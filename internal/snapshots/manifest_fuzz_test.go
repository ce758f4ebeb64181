package snapshots

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/internal/fault"
)

// oneFile is a store whose only file has this content.
type oneFile struct {
	Store
	name    string
	content []byte
}

func (o oneFile) List(context.Context, string) ([]File, error) {
	return []File{{Name: o.name, Bytes: int64(len(o.content))}}, nil
}

func (o oneFile) Read(_ context.Context, name string) (io.ReadCloser, error) {
	if name != o.name {
		return nil, fault.New(fault.Gone, "SnapshotMissing", "no file %s", name)
	}
	return io.NopCloser(bytes.NewReader(o.content)), nil
}

// FuzzManifest: whatever a store has in the place of a manifest is refused as damaged, and then not listed either, or is that of the
// snapshot that was asked for, the same when it is written and read again, with nothing that the status of a policy does not take.
func FuzzManifest(f *testing.F) {
	of := Cluster{Namespace: "team-a", Name: "demo", UID: "u-1"}
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	good := Manifest{
		Format: format, Name: Name(of.Name, at), Cluster: of, Taken: at, Bytes: 10, SHA256: strings.Repeat("0a", 32),
		EtcdState: EtcdState{Revision: 42, Etcd: "3.6.8", Kubernetes: "v1.36.3"},
	}
	for _, change := range []func(*Manifest){
		func(*Manifest) {}, func(m *Manifest) { m.Format = 2 }, func(m *Manifest) { m.Encrypted = true }, func(m *Manifest) { m.Taken = time.Time{} },
		func(m *Manifest) { m.Taken = time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -7200)) }, func(m *Manifest) { m.Kubernetes = strings.Repeat("1", 300) },
		func(m *Manifest) { m.Kubernetes = "v1.36.3\x1b[2J" }, func(m *Manifest) { m.Revision = -1 }, func(m *Manifest) { m.Name = "../" + m.Name },
		func(m *Manifest) { m.Cluster.Namespace = "team-b" }, func(m *Manifest) { m.SHA256 = strings.Repeat("ü", 32) },
	} {
		m := good
		change(&m)
		text, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("["))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, text []byte) {
		from := oneFile{name: manifestFile(of, good.Name), content: text}
		m, err := read(t.Context(), from, of, good.Name)
		if err != nil {
			if found := fault.As(err); found == nil || found.Kind != fault.Invalid || found.Reason != reasonDamaged {
				t.Errorf("refused as something else than damaged: %v", err)
			}
			if list, err := List(t.Context(), from, of); err != nil || len(list) > 0 {
				t.Errorf("listed: %v, %v", list, err)
			}
			return
		}
		checkManifest(t, of, m)
		if m.Name != good.Name {
			t.Errorf("it is that of %q", m.Name)
		}
		written, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if len(written) > maxManifest { // characters that are escaped
			return
		}
		again, err := read(t.Context(), oneFile{name: from.name, content: written}, of, good.Name)
		if diff := cmp.Diff(m, again); err != nil || diff != "" {
			t.Errorf("another one when it is read again: %v (-want +got):\n%s", err, diff)
		}
	})
}

// checkManifest checks what is done with a manifest: its snapshot is in the folder of the Cluster, and what the status of an
// EtcdSnapshotPolicy shows of it is within the bounds of the API.
func checkManifest(t *testing.T, of Cluster, m Manifest) {
	t.Helper()
	if !strings.HasPrefix(m.file(), of.folder()+"/") || strings.Contains(m.file(), "..") {
		t.Errorf("its snapshot is %q", m.file())
	}
	if len(m.Kubernetes) > 256 || m.Revision < 0 || m.Bytes < 1 || m.Taken.IsZero() {
		t.Errorf("no status takes %+v", m)
	}
	var read metav1.Time
	shown, err := json.Marshal(metav1.NewTime(m.Taken))
	if err == nil {
		err = json.Unmarshal(shown, &read)
	}
	if err != nil || read.Unix() != m.Taken.Unix() {
		t.Errorf("the status shows %s: %v", shown, err)
	}
}

// FuzzParseName: a name in a store, or in a request, is that of one cluster and one second, or refused.
func FuzzParseName(f *testing.F) {
	for _, name := range []string{"demo-20260101T000000Z", "a.b-c-20261231T235959Z", "-20260101T000000Z", "demo-20260132T000000Z", "../x-20260101T000000Z", "demo-20260101T000000Z.json"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		cluster, at, ok := ParseName(name)
		if ok && Name(cluster, at) != name {
			t.Errorf("%q is that of %q at %s, which is %q", name, cluster, at, Name(cluster, at))
		}
	})
}
