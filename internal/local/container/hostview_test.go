package container

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"

	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
)

// countingStore counts the readings of the records.
type countingStore struct {
	*hosttransfer.Store
	readings int
}

func (s *countingStore) Ownership() (hosttransfer.Ownership, error) {
	s.readings++
	return s.Store.Ownership()
}

// fakeDocker is a Docker Engine in memory with one network. It counts the listings of containers.
type fakeDocker struct {
	network    network.Summary
	containers []container.Summary
	listings   int
}

func (d *fakeDocker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Api-Version", "1.52")
	w.Header().Set("Content-Type", "application/json")
	var out any
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/_ping"):
		return
	case strings.HasSuffix(path, "/containers/json"):
		d.listings++
		out = d.containers
	case strings.HasSuffix(path, "/networks"):
		out = []network.Summary{d.network}
	case strings.Contains(path, "/images/"):
		out = map[string]any{"Id": "image"}
	case strings.HasSuffix(path, "/containers/create"):
		out = d.create(r)
		w.WriteHeader(http.StatusCreated)
	case strings.HasSuffix(path, "/start"):
		w.WriteHeader(http.StatusNoContent)
		return
	default: // no such container or volume
		w.WriteHeader(http.StatusNotFound)
		out = map[string]string{"message": "no such resource"}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// create adds the container of a request.
func (d *fakeDocker) create(r *http.Request) container.CreateResponse {
	var request struct {
		container.Config
		NetworkingConfig network.NetworkingConfig
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	name := r.URL.Query().Get("name")
	c := container.Summary{ID: "id-" + name, Names: []string{"/" + name}, Labels: request.Labels, State: container.StateCreated}
	c.NetworkSettings = &container.NetworkSettingsSummary{Networks: request.NetworkingConfig.EndpointsConfig}
	d.containers = append(d.containers, c)
	return container.CreateResponse{ID: c.ID}
}

// fakeEngine returns an engine on a Docker Engine in memory, and the machine to create in its network.
func fakeEngine(t *testing.T) (*Engine, *fakeDocker, *countingStore, func(name string) backend.MachineSpec) {
	t.Helper()
	cluster := owner("c")
	name := backend.NetworkName("i", cluster.Object)
	d := &fakeDocker{network: network.Summary{Network: network.Network{
		Name: name, ID: "net-id", Internal: true, Labels: cluster.Labels("i"),
		IPAM: network.IPAM{Config: []network.IPAMConfig{{Subnet: netip.MustParsePrefix("172.16.0.0/18"), Gateway: netip.MustParseAddr("172.16.0.1")}}},
	}}}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	e, err := New(Config{Instance: "i", Address: "tcp://" + server.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	proc := t.TempDir()
	if err := os.MkdirAll(filepath.Join(proc, "1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(proc, "1/status"), []byte("CapBnd:\t000001ffffffffff\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	store := &countingStore{Store: hosttransfer.LabelsOnly("i")}
	e.host, e.ownership = KernelHost{Proc: proc}, store
	return e, d, store, func(machine string) backend.MachineSpec {
		o := owner(machine)
		return backend.MachineSpec{Owner: o, Name: backend.MachineName("i", o.Object), Hostname: machine, Image: "image",
			Network: backend.Ref{Object: cluster.Object, Name: name}, Maximum: policy.Maximum{Total: 2}}
	}
}

// The quota check and the creation of a machine read the host once, together.
func TestCreationReadsHostOnce(t *testing.T) {
	e, d, store, machine := fakeEngine(t)
	spec := machine("a")
	quota, err := e.CheckQuota(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	spec.HostView = quota.HostView
	if _, err := e.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if d.listings != 1 || store.readings != 2 || len(d.containers) != 1 {
		t.Errorf("got %d listings, %d readings of the records, %d containers", d.listings, store.readings, len(d.containers))
	}
}

// A reading from before another creation is stale: the host is read again, so that the quota and the addresses are right.
func TestCreationRejectsStaleView(t *testing.T) {
	e, d, _, machine := fakeEngine(t)
	quota, err := e.CheckQuota(t.Context(), machine("a"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"a", "b", "c"} {
		spec := machine(name)
		spec.HostView = quota.HostView
		if _, err := e.Create(t.Context(), spec); (err == nil) != (i < 2) {
			t.Errorf("machine %s: %v", name, err)
		}
	}
	if len(d.containers) != 2 || d.containers[0].Labels[backend.LabelAddress] == d.containers[1].Labels[backend.LabelAddress] {
		t.Errorf("two machines with different addresses; got %+v", d.containers)
	}
}
