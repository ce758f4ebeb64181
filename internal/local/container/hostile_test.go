package container

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/test/testimage"
)

// victims are containers, volumes and networks of others, under names that an attacker's objects lead to.
type victims struct {
	containers, volumes, networks []string
}

// check makes sure that everything is there as it was: containers run and were not entered.
func (v victims) check(t *testing.T, e *Engine) {
	t.Helper()
	for _, name := range v.containers {
		r, err := e.api.ContainerInspect(t.Context(), name, client.ContainerInspectOptions{})
		if err != nil || !r.Container.State.Running || len(r.Container.ExecIDs) != 0 {
			t.Errorf("container %s: %+v, %v", name, r.Container.State, err)
		}
	}
	for _, name := range v.volumes {
		if _, err := e.api.VolumeInspect(t.Context(), name, client.VolumeInspectOptions{}); err != nil {
			t.Errorf("volume %s: %v", name, err)
		}
	}
	for _, name := range v.networks {
		if _, err := e.api.NetworkInspect(t.Context(), name, client.NetworkInspectOptions{}); err != nil {
			t.Errorf("network %s: %v", name, err)
		}
	}
}

// bystander starts a container that someone else made.
func (e *Engine) bystander(t *testing.T, name string, labels map[string]string) string {
	t.Helper()
	made, err := e.api.ContainerCreate(t.Context(), client.ContainerCreateOptions{Name: name, Config: &container.Config{Image: testImage(t, e), Labels: labels}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = e.api.ContainerRemove(context.Background(), made.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	})
	if _, err := e.api.ContainerStart(t.Context(), made.ID, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

func (e *Engine) someVolume(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	if _, err := e.api.VolumeCreate(t.Context(), client.VolumeCreateOptions{Name: name, Labels: labels}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = e.api.VolumeRemove(context.Background(), name, client.VolumeRemoveOptions{}) })
}

func (e *Engine) someNetwork(t *testing.T, name, subnet string, labels map[string]string) {
	t.Helper()
	_, err := e.api.NetworkCreate(t.Context(), name, client.NetworkCreateOptions{Internal: true, Labels: labels,
		IPAM: &network.IPAM{Config: []network.IPAMConfig{{Subnet: netip.MustParsePrefix(subnet)}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = e.api.NetworkRemove(context.Background(), name, client.NetworkRemoveOptions{}) })
}

// What does not belong to the object survives every verb, by whatever name or ID it is reached: C3.
func TestForeignContainersSurviveEverything(t *testing.T) {
	e := engine(t)
	o := types.NamespacedName{Namespace: "slipway-test", Name: "attacker"}
	own := backend.MachineName(e.instance, o)
	labels := func(instance, object string) map[string]string {
		return map[string]string{backend.LabelInstance: instance, backend.LabelObject: object}
	}
	plain := e.bystander(t, "ci-postgres-"+e.instance, nil)
	other := backend.MachineName(e.instance+"-other", o)
	e.bystander(t, own, nil) // a program that took the name
	e.bystander(t, other, labels(e.instance+"-third", o.String()))
	neighbour := e.testMachine(t, "neighbour")
	volume := backend.MachineName(e.instance+"-volume", o)
	e.someVolume(t, volume, map[string]string{"database": "precious"})
	v := victims{containers: []string{plain, own, other, neighbour.Name}, volumes: []string{volume, neighbour.Name}, networks: []string{neighbour.Network.Name}}
	for name, ref := range map[string]backend.Ref{
		"by name":                    {Object: o, Name: "ci-postgres-" + e.instance},
		"by the beginning of an ID":  {Object: o, Name: plain[:12]},
		"by an ID":                   {Object: o, Name: own, ID: plain},
		"its own name":               {Object: o, Name: own},
		"another instance's name":    {Object: o, Name: other},
		"a neighbour's":              {Object: o, Name: neighbour.Name},
		"a volume":                   {Object: o, Name: volume},
		"a network, by a way around": {Object: o, Name: "../networks/" + neighbour.Network.Name},
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := e.Inspect(t.Context(), ref); err == nil && (m.State.Exists() || m.State == backend.Orphaned) {
				t.Errorf("it is found: %+v", m)
			}
			if err := e.Bootstrap(t.Context(), ref, script("echo owned >/tmp/owned\n", patience)); err == nil {
				t.Error("the script runs in it")
			}
			if _, err := e.Progress(t.Context(), ref); err == nil {
				t.Error("it is asked")
			}
			_ = e.Delete(t.Context(), ref) // whether it fails or finds nothing
			v.check(t, e)
		})
	}
	spec := neighbour
	spec.Owner, spec.Name = backend.Owner{Cluster: "c", Object: o, UID: "u"}, own
	if _, err := e.Create(t.Context(), spec); !isForeign(err) || !strings.Contains(err.Error(), own) {
		t.Errorf("making a container whose name is taken: got %v", err)
	}
	v.check(t, e)
}

// What another instance made is no one else's because of what an object says: not by its provider ID, and not by the network in its
// status. It is once it was handed over, and then not its maker's any more: H1.
func TestWhatWasHandedOver(t *testing.T) {
	e := engine(t)
	spec := e.testMachine(t, "m1")
	there, err := New(Config{Instance: e.instance + "-there", Ownership: hosttransfer.Open(datadir.Dir(t.TempDir()), e.instance+"-there")})
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	name := backend.ResolveMachineName(e.instance, backend.ProviderID(spec.Name), spec.Owner.Object)
	if name != spec.Name {
		t.Fatalf("%s is not the name of %s", spec.Name, spec.Owner.Object)
	}
	ref := backend.Ref{Object: spec.Owner.Object, Name: name}
	has := func(e *Engine) [3]bool {
		t.Helper()
		m, err := e.Inspect(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		_, network, err := e.FindNetwork(t.Context(), spec.Network)
		if err != nil {
			t.Fatal(err)
		}
		list, err := e.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return [3]bool{m.State == backend.Running, network, len(list) == 1}
	}
	all, nothing := [3]bool{true, true, true}, [3]bool{}
	check := func(when string, here, other [3]bool) {
		t.Helper()
		if got := has(e); got != here {
			t.Errorf("%s: here %v", when, got)
		}
		if got := has(there); got != other {
			t.Errorf("%s: there %v", when, got)
		}
	}
	check("before", all, nothing)
	items, err := e.ListOwned(t.Context(), "slipway-test/c")
	if err != nil || len(items) != 3 {
		t.Fatalf("got %+v, %v", items, err)
	}
	record := hosttransfer.Record{Cluster: "slipway-test/c", UID: "u", From: e.instance, To: there.instance, Items: items}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(e.ownership.(*hosttransfer.Store).BeginTransfer(record))
	check("given", nothing, nothing)
	must(there.ownership.(*hosttransfer.Store).RecordIncoming(record))
	check("taken", nothing, all)
	nobody := func(backend.Owner) bool { return false }
	must(e.Sweep(t.Context(), backend.InUse{Machine: nobody, Network: nobody}))
	must(RemoveInstance(t.Context(), e.ownership.(*hosttransfer.Store), func(int, int) {}))
	check("its maker removes all it has", nothing, all)
	must(there.Delete(t.Context(), ref))
	must(there.DeleteNetwork(t.Context(), spec.Network))
	must(e.ownership.(*hosttransfer.Store).FinishTransfer(record))
	for _, one := range []*Engine{e, there} {
		must(one.Sweep(t.Context(), backend.InUse{Machine: nobody, Network: nobody}))
		h, err := one.ownership.Ownership()
		none, noneErr := hosttransfer.LabelsOnly(one.instance).Ownership()
		if diff := cmp.Diff(none, h, cmp.AllowUnexported(hosttransfer.Ownership{})); err != nil || noneErr != nil || diff != "" {
			t.Errorf("records of what is gone: %v, %v\n%s", err, noneErr, diff)
		}
	}
}

// A network that does not belong to the LocalCluster is neither found, used nor removed, whatever the status says: H1.
func TestForeignNetworksSurviveEverything(t *testing.T) {
	e := engine(t)
	n := e.testNetwork(t) // of the neighbour
	o := types.NamespacedName{Namespace: "slipway-test", Name: "attacker"}
	layout := netip.MustParsePrefix("10.213.0.0/24").String()
	own := backend.NetworkName(e.instance, o)
	e.someNetwork(t, own, layout, nil) // a program that took the name
	v := victims{networks: []string{n.Name, own}}
	for _, name := range []string{n.Name, n.ID, own, "bridge"} {
		ref := backend.Ref{Object: o, Name: name}
		if got, ok, err := e.FindNetwork(t.Context(), ref); ok || err != nil {
			t.Errorf("%s is found: %+v, %v", name, got, err)
		}
		if err := e.DeleteNetwork(t.Context(), ref); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		spec := e.machineOn(t, ref)
		if _, err := e.Create(t.Context(), spec); fault.As(err) == nil || fault.As(err).Reason != reasonNetworkAbsent {
			t.Errorf("a node joins %s: %v", name, err)
		}
		v.check(t, e)
	}
	_, err := e.EnsureNetwork(t.Context(), backend.NetworkSpec{Owner: backend.Owner{Cluster: "c", Object: o}, Name: own, Policy: policy.Default()})
	if !isForeign(err) {
		t.Errorf("a name that is taken: got %v", err)
	}
	v.check(t, e)
}

// machineOn is a machine of the attacker's that asks for a network.
func (e *Engine) machineOn(t *testing.T, ref backend.Ref) backend.MachineSpec {
	o := types.NamespacedName{Namespace: "slipway-test", Name: "node"}
	return backend.MachineSpec{Owner: backend.Owner{Cluster: "c", Object: o}, Name: backend.MachineName(e.instance, o), Network: ref, Image: testImage(t, e)}
}

// Paths are checked where they lead, and once more before the container is made.
func TestMountsAreCheckedWhereTheyLead(t *testing.T) {
	e := engine(t)
	e.paths.Reserved = []string{t.TempDir()}
	shared, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder, link := filepath.Join(shared, "folder"), filepath.Join(shared, "link")
	for _, err := range []error{os.Mkdir(folder, 0o755), os.Symlink("/", link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	info, err := e.api.Info(t.Context(), client.InfoOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, "/", "/proc/1", "/sys", "/dev", "/var/run/docker.sock", "/run", info.Info.DockerRootDir, filepath.Dir(info.Info.DockerRootDir), e.paths.Reserved[0]} {
		if got, err := e.ResolveMount(t.Context(), path); fault.As(err) == nil || fault.As(err).Reason != reasonMountRefused {
			t.Errorf("%s may be mounted as %q, %v", path, got, err)
		}
	}
	if got, err := e.ResolveMount(t.Context(), folder); err != nil || got != folder {
		t.Errorf("an ordinary folder: %q, %v", got, err)
	}
	o := types.NamespacedName{Namespace: "slipway-test", Name: "node"}
	spec := e.machineOn(t, netRef(e.testNetwork(t)))
	spec.Mounts = []backend.Mount{{HostPath: folder, MachinePath: "/data", ReadOnly: true}}
	if err := os.Rename(folder, folder+"-kept"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", folder); err != nil { // between the question and the container
		t.Fatal(err)
	}
	if _, err := e.Create(t.Context(), spec); fault.As(err) == nil || fault.As(err).Reason != reasonMountRefused {
		t.Errorf("the folder has become a link: got %v", err)
	}
	if m, err := e.Inspect(t.Context(), backend.Ref{Object: o, Name: spec.Name}); err != nil || m.State != backend.Absent {
		t.Errorf("nothing is made; got %+v, %v", m, err)
	}
}

func TestMaximaAreKept(t *testing.T) {
	e := engine(t)
	spec := e.testMachine(t, "m1")
	spec.Owner, spec.Maximum = owner("m2"), policy.Maximum{Namespace: 1}
	spec.Name = backend.MachineName(e.instance, spec.Owner.Object)
	if _, err := e.Create(t.Context(), spec); fault.As(err) == nil || fault.As(err).Reason != reasonTooMany || !strings.Contains(err.Error(), "maxima.nodes.namespace") {
		t.Errorf("got %v", err)
	}
	one := policy.Default()
	one.Maxima.Networks = policy.Maximum{Total: 1}
	other := owner("other")
	_, err := e.EnsureNetwork(t.Context(), backend.NetworkSpec{Owner: other, Name: backend.NetworkName(e.instance, other.Object), Policy: one})
	if fault.As(err) == nil || fault.As(err).Reason != reasonTooMany || !strings.Contains(err.Error(), "maxima.networks.total") {
		t.Errorf("got %v", err)
	}
}

// An explicit range is checked against the host: H2.
func TestExplicitRangesAreChecked(t *testing.T) {
	e := engine(t)
	taken, err := e.UsedRanges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := owner("other")
	for _, p := range taken {
		if !p.Range.Addr().Is4() || p.Range.Bits() < 16 {
			continue
		}
		wide := netip.PrefixFrom(p.Range.Addr(), 16).Masked()
		_, err := e.EnsureNetwork(t.Context(), backend.NetworkSpec{Owner: o, Name: backend.NetworkName(e.instance, o.Object), Subnet: wide, Policy: policy.Default()})
		if fault.As(err) == nil || fault.As(err).Reason != ReasonNoSubnet || !strings.Contains(err.Error(), "uses") {
			t.Errorf("%s, which holds %s (%s): got %v", wide, p.Range, p.By, err)
		}
	}
	if len(taken) == 0 {
		t.Error("the host uses no range at all")
	}
}

// An image that is no node image is a state of the machine, not an error without a word: newcomer 2.
func TestNoNodeImage(t *testing.T) {
	e := engine(t)
	image := imageName(e)
	if err := testimage.ImportNoNode(t.Context(), e.api, image); err != nil {
		t.Fatal(err)
	}
	o := owner("m1")
	spec := backend.MachineSpec{Owner: o, Name: backend.MachineName(e.instance, o.Object), Network: netRef(e.testNetwork(t)), Image: image}
	if _, err := e.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	p, err := e.Progress(t.Context(), refOf(spec))
	if err != nil || p.Phase != backend.Unusable || !strings.Contains(p.Log, "not a node image") {
		t.Errorf("got %+v, %v", p, err)
	}
}

// A node whose programs never end is removed all the same: who has the node chooses them.
func TestFarewellNeverEnds(t *testing.T) {
	e := engine(t)
	n := e.testNetwork(t)
	o := owner("hostile")
	spec := backend.MachineSpec{
		Owner: o, Name: backend.MachineName(e.instance, o.Object), Hostname: "hostile", ControlPlane: true, Image: testImage(t, e),
		Network: backend.Ref{Object: owner("c").Object, Name: n.Name}, Maximum: policy.Default().Maxima.Nodes,
	}
	if _, err := e.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	c, _, err := e.container(t.Context(), refOf(spec), e.ownership.Ownership)
	if err != nil {
		t.Fatal(err)
	}
	hostile := `mkdir -p /etc/kubernetes/manifests /bin; : >/etc/kubernetes/manifests/kube-apiserver.yaml; printf '#!/bin/sh\nsleep 1000\n' >/bin/pkill; chmod 755 /bin/pkill`
	if _, err := e.exec(t.Context(), c, hostile, nil); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := e.Delete(t.Context(), refOf(spec)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < shutdownTimeout {
		t.Errorf("the farewell ended after %s: this test shows nothing", took)
	}
	if m, err := e.Inspect(t.Context(), refOf(spec)); err != nil || m.State != backend.Absent {
		t.Errorf("it is still there: %+v, %v", m, err)
	}
}
