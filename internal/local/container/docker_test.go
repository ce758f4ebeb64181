package container

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/cloudinit"
	"github.com/slipwayhq/slipway/internal/local/subnet"
	"github.com/slipwayhq/slipway/internal/policy"
)

func TestNetwork(t *testing.T) {
	e := engine(t)
	first := e.testNetwork(t)
	layout, err := subnet.NewLayout(first.Subnet)
	if err != nil || first.Gateway != layout.Gateway {
		t.Errorf("the host is the first address of %s; got %s, %v", first.Subnet, first.Gateway, err)
	}
	if again := e.testNetwork(t); again != first {
		t.Errorf("a second call returns the same network; got %+v and %+v", first, again)
	}
	r, err := e.api.NetworkInspect(t.Context(), first.Name, client.NetworkInspectOptions{})
	if err != nil || !r.Network.Internal {
		t.Errorf("the network is internal: nothing may leave the host; got %+v, %v", r.Network, err)
	}
	other := owner("other")
	taken := backend.NetworkSpec{Owner: other, Name: backend.NetworkName(e.instance, other.Object), Subnet: first.Subnet, Policy: policy.Default()}
	if _, err := e.EnsureNetwork(t.Context(), taken); fault.As(err) == nil || fault.As(err).Reason != ReasonNoSubnet || !strings.Contains(err.Error(), first.Subnet.String()) {
		t.Errorf("a range that is taken: the message names it; got %v", err)
	}
	for range 2 {
		if err := e.DeleteNetwork(t.Context(), netRef(first)); err != nil {
			t.Errorf("deleting, also what is gone: %v", err)
		}
	}
	if _, ok, err := e.FindNetwork(t.Context(), netRef(first)); ok || err != nil {
		t.Errorf("the network is gone; got %v, %v", ok, err)
	}
}

// A network is internal unless a way out is asked for; then Docker gives what leaves the host its address. No container joins
// it here: nothing of this test leaves the host.
func TestNetworkWithInternet(t *testing.T) {
	e := engine(t)
	o := owner("out")
	ref := backend.Ref{Object: o.Object, Name: backend.NetworkName(e.instance, o.Object)}
	spec := backend.NetworkSpec{Owner: o, Name: ref.Name, Internet: true, Policy: policy.Default()}
	n, err := e.EnsureNetwork(t.Context(), spec)
	if err != nil || !n.Internet {
		t.Fatalf("got %+v, %v", n, err)
	}
	t.Cleanup(func() { _ = e.DeleteNetwork(context.WithoutCancel(t.Context()), ref) })
	r, err := e.api.NetworkInspect(t.Context(), n.Name, client.NetworkInspectOptions{})
	if err != nil || r.Network.Internal || r.Network.Options["com.docker.network.bridge.enable_ip_masquerade"] != "true" {
		t.Errorf("got %+v, %v", r.Network, err)
	}
	if again, found, err := e.FindNetwork(t.Context(), ref); err != nil || !found || again != n {
		t.Errorf("it is found as it was created: got %+v, %v, %v", again, found, err)
	}
	if internal := e.testNetwork(t); internal.Internet {
		t.Errorf("the network of another cluster is internal: got %+v", internal)
	}
}

func TestMachineLife(t *testing.T) {
	e := engine(t)
	spec := e.testMachine(t, "m1")
	m, err := e.Inspect(t.Context(), refOf(spec))
	if err != nil || m.State != backend.Running || m.Owner != spec.Owner || m.NodeVersion != "v1.36.3" || m.Hostname != "m1" {
		t.Fatalf("it runs and says whose it is; got %+v, %v", m, err)
	}
	if _, err := e.Create(t.Context(), spec); err != nil {
		t.Errorf("creating what runs: %v", err)
	}
	n, _, _ := e.FindNetwork(t.Context(), spec.Network)
	if err := e.DeleteNetwork(t.Context(), spec.Network); fault.As(err) == nil || fault.As(err).Reason != reasonNetworkInUse {
		t.Errorf("a network with machines is kept; got %v", err)
	}
	if _, err := e.api.ContainerRestart(t.Context(), spec.Name, client.ContainerRestartOptions{}); err != nil {
		t.Fatal(err)
	}
	r, err := e.api.ContainerInspect(t.Context(), spec.Name, client.ContainerInspectOptions{})
	if err != nil || r.Container.NetworkSettings.Networks[n.Name].IPAddress != m.Address {
		t.Errorf("the address survives a restart: want %s, got %+v, %v", m.Address, r.Container.NetworkSettings.Networks[n.Name], err)
	}
	if list, err := e.List(t.Context()); err != nil || len(list) != 1 || list[0].Name != spec.Name || list[0].State != backend.Running {
		t.Errorf("list: got %+v, %v", list, err)
	}
	for range 2 {
		if err := e.Delete(t.Context(), refOf(spec)); err != nil {
			t.Errorf("deleting, also what is gone: %v", err)
		}
	}
	if m, err := e.Inspect(t.Context(), refOf(spec)); err != nil || m.State != backend.Absent {
		t.Errorf("it is gone; got %+v, %v", m, err)
	}
	left, err := e.api.VolumeList(t.Context(), client.VolumeListOptions{Filters: client.Filters{}.Add("name", spec.Name)})
	if err != nil || len(left.Items) != 0 {
		t.Errorf("its volume is gone; got %+v, %v", left.Items, err)
	}
}

func TestCreateContinuesAfterACrash(t *testing.T) {
	e := engine(t)
	spec := e.testMachine(t, "m1")
	if err := e.Delete(t.Context(), refOf(spec)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.createContainer(t.Context(), spec, profile{Without: []string{"SYS_RESOURCE"}}); err != nil { // killed before the start
		t.Fatal(err)
	}
	if m, err := e.Inspect(t.Context(), refOf(spec)); err != nil || m.State != backend.Created {
		t.Fatalf("got %+v, %v", m, err)
	}
	if _, err := e.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if m, err := e.Inspect(t.Context(), refOf(spec)); err != nil || m.State != backend.Running {
		t.Errorf("the container that was made is started; got %+v, %v", m, err)
	}
}

func TestMachinesGetDifferentAddresses(t *testing.T) {
	e := engine(t)
	spec := e.testMachine(t, "m1")
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			s := spec
			s.Owner = owner(fmt.Sprintf("n%d", i))
			s.Name = backend.MachineName(e.instance, s.Owner.Object)
			_, errs[i] = e.Create(t.Context(), s)
		}()
	}
	wg.Wait()
	list, err := e.List(t.Context())
	if err != nil || len(list) != 4 {
		t.Fatalf("got %+v, %v, %v", list, err, errs)
	}
	seen := map[netip.Addr]bool{}
	for _, m := range list {
		if !m.Address.IsValid() || seen[m.Address] {
			t.Errorf("address of %s: %s", m.Name, m.Address)
		}
		seen[m.Address] = true
	}
}

func TestImageAbsent(t *testing.T) {
	e := engine(t)
	o := owner("m1")
	_, err := e.Create(t.Context(), backend.MachineSpec{Owner: o, Name: backend.MachineName(e.instance, o.Object), Network: netRef(e.testNetwork(t)),
		Image: "slipway.dev/node:v0.0.1"})
	f := fault.As(err)
	if f == nil || f.Reason != reasonImageAbsent || f.Kind != fault.Invalid || !strings.Contains(f.Message, "slipway image build --kubernetes-version v0.0.1`") {
		t.Errorf("the message says how to get the image; got %v", err)
	}
}

func TestNetworkAbsent(t *testing.T) {
	e := engine(t)
	o := owner("m1")
	_, err := e.Create(t.Context(), backend.MachineSpec{Owner: o, Name: backend.MachineName(e.instance, o.Object), Network: backend.Ref{Object: owner("no-such").Object}, Image: testImage(t, e)})
	if f := fault.As(err); f == nil || f.Reason != reasonNetworkAbsent || f.Kind != fault.Transient {
		t.Errorf("got %v", err)
	}
}

func script(body string, timeout time.Duration) backend.Script {
	return backend.Script{Body: []byte(body), Sentinel: "/run/cluster-api/bootstrap-success.complete", Timeout: timeout}
}

func TestBootstrap(t *testing.T) {
	e := engine(t)
	spec := e.testMachine(t, "m1")
	cases := map[string]struct {
		reason, body string
		timeout      time.Duration
		phase        backend.Phase
		log          string
	}{
		"success": {"the sentinel decides", "echo success > /run/cluster-api/bootstrap-success.complete\nfalse\n", patience, backend.Succeeded, ""},
		"failure": {"no sentinel; the log is shown", "echo it broke\nexit 3\n", patience, backend.Failed, "it broke"},
		"timeout": {"it is ended", "echo waiting\nsleep 3600\n", time.Second, backend.Failed, "waiting\nslipway: ended after 1 seconds (bootstrapTimeoutSeconds)"},
		"secrets": {"they are masked", "echo token abcdef.0123456789abcdef\n", patience, backend.Failed, "token ***"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := spec
			s.Owner = owner(name)
			s.Name = backend.MachineName(e.instance, s.Owner.Object)
			if _, err := e.Create(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if p, err := e.Progress(t.Context(), refOf(s)); err != nil || p.Phase != backend.NotStarted {
				t.Fatalf("before: %+v, %v", p, err)
			}
			if err := e.Bootstrap(t.Context(), refOf(s), script(tc.body, tc.timeout)); err != nil {
				t.Fatal(err)
			}
			var p backend.Progress
			eventually(t, "the end of the script", func() bool {
				var err error
				if p, err = e.Progress(t.Context(), refOf(s)); err != nil {
					t.Fatal(err)
				}
				return p.Phase != backend.InProgress && p.Phase != backend.NotStarted
			})
			if p.Phase != tc.phase || p.Log != tc.log {
				t.Errorf("%s: got %+v", tc.reason, p)
			}
			if out, err := e.exec(t.Context(), e.found(t, s), "[ ! -e "+scriptFile+" ]", nil); err != nil {
				t.Errorf("the script, which may hold secrets, is removed: %s, %v", out, err)
			}
		})
	}
}

// Bootstrap data goes all the way: parsed, rendered, run in a container, found successful by its sentinel.
func TestBootstrapDataInAContainer(t *testing.T) {
	e := engine(t)
	spec := e.testMachine(t, "m1")
	m, err := e.Inspect(t.Context(), refOf(spec))
	if err != nil {
		t.Fatal(err)
	}
	node := cloudinit.NodeSettings{Name: spec.Name, Hostname: m.Hostname, ProviderID: backend.ProviderID(spec.Name), Address: m.Address}
	data := `## template: jinja
#cloud-config
write_files:
- path: /etc/kubernetes/join.yaml
  permissions: "0600"
  content: "name: {{ ds.meta_data.local_hostname }}\n"
runcmd:
- [cat, /etc/kubernetes/join.yaml, /etc/default/kubelet]
- cat /etc/kubernetes/join.yaml /etc/default/kubelet >/var/seen && mkdir -p /run/cluster-api && echo success > /run/cluster-api/bootstrap-success.complete
`
	s, err := cloudinit.RenderScript(cloudinit.BootstrapData{Value: []byte(data)}, node, patience)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Bootstrap(t.Context(), refOf(spec), s); err != nil {
		t.Fatal(err)
	}
	var p backend.Progress
	eventually(t, "the end of the bootstrap", func() bool {
		p, err = e.Progress(t.Context(), refOf(spec))
		return err == nil && p.Phase != backend.InProgress && p.Phase != backend.NotStarted
	})
	if p.Phase != backend.Succeeded {
		t.Fatalf("got %+v", p)
	}
	seen, err := e.exec(t.Context(), e.found(t, spec), "cat /var/seen", nil)
	want := "name: m1\nKUBELET_EXTRA_ARGS=\" --node-ip=" + m.Address.String() + " --provider-id=slipway:///" + spec.Name + "\"\n"
	if err != nil || seen != want {
		t.Errorf("got %q, %v, want %q", seen, err, want)
	}
}

func TestBootstrapRunsOnce(t *testing.T) {
	e := engine(t)
	spec := e.testMachine(t, "m1")
	s := script("echo x >>/var/count\nwhile [ ! -e /var/go ]; do sleep 0.05; done\necho > /run/cluster-api/bootstrap-success.complete\n", patience)
	var wg sync.WaitGroup
	for range 3 { // a controller that does not see what it did, and one that was started again
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := e.Bootstrap(t.Context(), refOf(spec), s); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if err := e.Bootstrap(t.Context(), refOf(spec), s); err != nil {
		t.Error(err)
	}
	if _, err := e.exec(t.Context(), e.found(t, spec), ": >/var/go", nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "success", func() bool {
		p, err := e.Progress(t.Context(), refOf(spec))
		return err == nil && p.Phase == backend.Succeeded
	})
	if out, err := e.exec(t.Context(), e.found(t, spec), "cat /var/count", nil); err != nil || out != "x\n" {
		t.Errorf("the script ran once; got %q, %v", out, err)
	}
}

func TestBootstrapInterrupted(t *testing.T) {
	e := engine(t)
	spec := e.testMachine(t, "m1")
	if err := e.Bootstrap(t.Context(), refOf(spec), script("sleep 3600\n", time.Hour)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the start", func() bool {
		p, err := e.Progress(t.Context(), refOf(spec))
		return err == nil && p.Phase == backend.InProgress
	})
	now := 0
	if _, err := e.api.ContainerRestart(t.Context(), spec.Name, client.ContainerRestartOptions{Timeout: &now}); err != nil {
		t.Fatal(err)
	}
	if p, err := e.Progress(t.Context(), refOf(spec)); err != nil || p.Phase != backend.Interrupted {
		t.Errorf("a restart in the middle is told from a failure; got %+v, %v", p, err)
	}
}

func TestSweepKeepsWhatIsOwned(t *testing.T) {
	e := engine(t)
	spec := e.testMachine(t, "m1")
	orphan := spec
	orphan.Owner = owner("orphan")
	orphan.Name = backend.MachineName(e.instance, orphan.Owner.Object)
	if _, err := e.Create(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	other, err := New(Config{Instance: e.instance + "-other"})
	if err != nil {
		t.Fatal(err)
	}
	nobody := func(backend.Owner) bool { return false }
	if err := other.Sweep(t.Context(), backend.InUse{Machine: nobody, Network: nobody}); err != nil {
		t.Fatal(err)
	}
	keep := backend.InUse{
		Machine: func(o backend.Owner) bool { return o == spec.Owner },
		Network: func(o backend.Owner) bool { return o.Object.Name == "c" },
	}
	if err := e.Sweep(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	list, err := e.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != spec.Name {
		t.Errorf("another instance's sweep touches nothing, ours only the orphan; got %+v, %v", list, err)
	}
	if err := RemoveInstance(t.Context(), e.ownership.(*hosttransfer.Store), func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	if list, err := e.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("all is removed; got %+v, %v", list, err)
	}
	if _, ok, err := e.FindNetwork(t.Context(), spec.Network); ok || err != nil {
		t.Errorf("the network too; got %v, %v", ok, err)
	}
}
