package hosttransfer_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/fault"
)

func item(id, maker string) hosttransfer.Item {
	return hosttransfer.Item{Kind: hosttransfer.Container, ID: id, Name: "n", Creator: maker, Object: "ns/m"}
}

func TestHas(t *testing.T) {
	records := func(moving bool, items ...hosttransfer.Item) []hosttransfer.Record {
		return []hosttransfer.Record{{InProgress: moving, Items: items}}
	}
	network := item("1", "here")
	network.Kind = hosttransfer.Network
	cases := map[string]struct {
		reason       string
		given, taken []hosttransfer.Record
		item         hosttransfer.Item
		has          bool
	}{
		"made here":          {"its label says so", nil, nil, item("1", "here"), true},
		"made elsewhere":     {"no object can make it this one's", nil, nil, item("1", "there"), false},
		"made by no one":     {"a program of the host", nil, nil, item("1", ""), false},
		"being given":        {"it may be the other's already", records(true, item("1", "here")), nil, item("1", "here"), false},
		"given":              {"it is the other's", records(false, item("1", "here")), nil, item("1", "here"), false},
		"another of its ID":  {"kinds have IDs of their own", records(false, network), nil, item("1", "here"), true},
		"one made later":     {"the record is about the one before", records(false, item("1", "here")), nil, item("2", "here"), true},
		"taken":              {"it was handed over", nil, records(false, item("1", "there")), item("1", "there"), true},
		"taken back":         {"what was given before counts no more", records(false, item("1", "here")), records(false, item("1", "here")), item("1", "here"), true},
		"taken, being given": {"it may be the next one's already", records(true, item("1", "there")), records(false, item("1", "there")), item("1", "there"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := hosttransfer.NewOwnership("here", tc.given, tc.taken).Owns(tc.item); got != tc.has {
				t.Errorf("got %v: %s", got, tc.reason)
			}
		})
	}
}

// One thing goes from a to b, to c, and back to a: at every point at most one has it, and at the end of each way exactly one.
func TestOneOwner(t *testing.T) {
	books := map[string]*hosttransfer.Store{}
	for _, name := range []string{"a", "b", "c"} {
		books[name] = hosttransfer.Open(datadir.Dir(t.TempDir()), name)
	}
	thing := item("1", "a")
	owners := func() (out string) {
		t.Helper()
		for _, name := range []string{"a", "b", "c"} {
			h, err := books[name].Ownership()
			if err != nil {
				t.Fatal(err)
			}
			if h.Owns(thing) {
				out += name
			}
		}
		return out
	}
	step := func(want string, err error) {
		t.Helper()
		if got := owners(); err != nil || got != want {
			t.Fatalf("owned by %q, %v; want %q", got, err, want)
		}
	}
	step("a", nil)
	for _, way := range []struct{ uid, from, to string }{{"1", "a", "b"}, {"2", "b", "c"}, {"3", "c", "a"}, {"4", "a", "b"}, {"5", "b", "a"}} {
		r := hosttransfer.Record{Cluster: "ns/demo", UID: way.uid, From: way.from, To: way.to, Items: []hosttransfer.Item{thing}, Planes: []string{"ns.demo"}}
		from, to := books[way.from], books[way.to]
		give := func() {
			step("", from.BeginTransfer(r))
			h, err := from.Ownership()
			if _, giving := h.OutgoingTransfer("ns.demo"); err != nil || !giving {
				t.Errorf("the control plane is not being given: %v", err)
			}
			step(way.to, to.RecordIncoming(r))
		}
		give()
		step("", to.CancelIncoming(r)) // it is taken back
		step(way.from, from.CancelTransfer(r))
		give()
		step(way.to, from.FinishTransfer(r))
		h, err := from.Ownership()
		if _, giving := h.OutgoingTransfer("ns.demo"); err != nil || giving {
			t.Errorf("the move is over, and the control plane is still being given: %v", err)
		}
	}
	for _, b := range books {
		if err := b.Prune(func(hosttransfer.Item) bool { return false }); err != nil {
			t.Error(err)
		}
		given, err1 := b.Outgoing()
		taken, err2 := b.Incoming()
		if len(given)+len(taken) > 0 || err1 != nil || err2 != nil {
			t.Errorf("what is gone is still recorded: %v, %v; %v, %v", given, taken, err1, err2)
		}
	}
}

// A record whose UID would lead out of the folder is not written.
func TestRecordsStayInTheFolder(t *testing.T) {
	dir := t.TempDir()
	b := hosttransfer.Open(datadir.Dir(dir), "a")
	for _, uid := range []string{"", "../../planes/x", "a/b", "a.b"} {
		if err := b.BeginTransfer(hosttransfer.Record{UID: uid, Items: []hosttransfer.Item{item("1", "a")}}); err == nil {
			t.Errorf("%q is written", uid)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "custody"))
	if err != nil || len(entries) != 1 { // the lock
		t.Errorf("got %v, %v", entries, err)
	}
}

// Records are not written while something is begun that they would keep from being begun.
func TestHold(t *testing.T) {
	b := hosttransfer.Open(datadir.Dir(t.TempDir()), "a")
	release, err := b.BlockTransfers()
	if err != nil {
		t.Fatal(err)
	}
	also, err := b.BlockTransfers()
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan error)
	go func() { written <- b.BeginTransfer(hosttransfer.Record{UID: "u"}) }()
	also()
	if given, err := b.Outgoing(); len(given) > 0 || err != nil {
		t.Errorf("got %v, %v", given, err)
	}
	release()
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// Without a data directory, there are no records, and none can be written.
func TestStoreWithoutDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, b := range map[string]*hosttransfer.Store{"nil": nil, "labels only": hosttransfer.LabelsOnly("")} {
		h, err := b.Ownership()
		if err != nil || h.Owns(item("1", "a")) || b.Instance() != "" {
			t.Errorf("%s: it owns a resource of another instance: %v", name, err)
		}
		outgoing, err1 := b.Outgoing()
		incoming, err2 := b.Incoming()
		release, err3 := b.BlockTransfers()
		if len(outgoing)+len(incoming) > 0 || err1 != nil || err2 != nil || err3 != nil {
			t.Errorf("%s: got %v, %v; %v, %v, %v", name, outgoing, incoming, err1, err2, err3)
		}
		release()
		if err := b.Prune(func(hosttransfer.Item) bool { return false }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r := hosttransfer.Record{UID: "u", Items: []hosttransfer.Item{item("1", "a")}}
		for _, write := range []func(hosttransfer.Record) error{b.BeginTransfer, b.CancelTransfer, b.RecordIncoming, b.CancelIncoming, b.FinishTransfer} {
			if err := write(r); fault.KindOf(err) != fault.Bug {
				t.Errorf("%s: written: %v", name, err)
			}
		}
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
		t.Errorf("got %v, %v", entries, err)
	}
}

func TestKeeper(t *testing.T) {
	folder := t.TempDir()
	check := func(want string) {
		t.Helper()
		if got, err := hosttransfer.AssignedSupervisor(folder); got != want || err != nil {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	check("")
	if err := hosttransfer.AssignSupervisor(folder, "b"); err != nil {
		t.Fatal(err)
	}
	check("b")
	for range 2 {
		if err := hosttransfer.UnassignSupervisor(folder); err != nil {
			t.Error(err)
		}
		check("")
	}
	if err := hosttransfer.AssignSupervisor(filepath.Join(folder, "gone"), "b"); !os.IsNotExist(err) {
		t.Errorf("a folder that is gone is not made: %v", err)
	}
}

func TestPlace(t *testing.T) {
	here, err := hosttransfer.LocationOnHost("/data", "abc", func(string) string { return "unix:///docker.sock" })
	if err != nil || here.Boot == "" {
		t.Fatalf("got %+v, %v", here, err)
	}
	back, ok := hosttransfer.LocationFromData(here.Data())
	if diff := cmp.Diff(here, back); !ok || diff != "" {
		t.Error(ok, diff)
	}
	if _, ok := hosttransfer.LocationFromData(map[string]string{"instance": "abc"}); ok {
		t.Error("half a place is one")
	}
}
