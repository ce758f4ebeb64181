package ssh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/jsonpath"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

const (
	// virtualIP is the address of the control plane.
	virtualIP = "198.18.0.100"
	// patience is how long one step may take on a busy machine.
	patience = 15 * time.Minute
)

// installation is a management cluster of the program, as users have it.
type installation struct {
	*testing.T
	binary, dir string
	objects     dynamic.Interface
}

// startInstallation starts the program with the bundle of the test.
func startInstallation(t *testing.T) installation {
	t.Helper()
	return startInstallationWith(t, filepath.Dir(testBundle(t).Dir), "")
}

// startInstallationWith starts the program with a directory of bundles and further lines of the configuration below "hosts:".
func startInstallationWith(t *testing.T, bundles, hosts string) installation {
	t.Helper()
	binary, err := apiserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "slipway-ssh-") // t.TempDir's path is too long for a unix socket
	if err != nil {
		t.Fatal(err)
	}
	in := installation{T: t, binary: binary, dir: dir}
	t.Cleanup(func() {
		if t.Failed() {
			if log, err := os.ReadFile(filepath.Join(dir, "data", "log", "slipway.log")); err == nil {
				t.Logf("the end of the log:\n%s", log[max(0, len(log)-8000):])
			}
		}
		if os.Getenv("SLIPWAY_TEST_SSH_KEEP") != "" {
			return
		}
		if out, err := in.try("down", "--delete"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		_ = os.RemoveAll(dir)
	})
	config := "apiVersion: config.slipway.dev/v1alpha1\nkind: Configuration\n" +
		"controlPlanes:\n  addresses: [" + hostedEndpoint + "/32]\nhosts:\n  virtualIPs: [198.18.0.96/28]\n" + hosts
	if err := os.WriteFile(in.path("config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	in.run("up", "--detach", "--listen", "127.0.0.1:0", "--config", in.path("config.yaml"))
	if err := os.Symlink(bundles, in.path("data/bundles")); err != nil {
		t.Fatal(err)
	}
	management, err := clientcmd.BuildConfigFromFlags("", in.path("data/kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if in.objects, err = dynamic.NewForConfig(management); err != nil {
		t.Fatal(err)
	}
	return in
}

func (in installation) path(name string) string { return filepath.Join(in.dir, name) }

func (in installation) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if args[0] == "kubectl" {
		args = append([]string{"kubectl", "--kubeconfig", in.path("data/kubeconfig")}, args[1:]...)
	} else {
		args = append(args, "--data-dir", in.path("data"))
	}
	cmd := exec.CommandContext(ctx, in.binary, args...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (in installation) run(args ...string) string {
	in.Helper()
	out, err := in.try(args...)
	if err != nil {
		in.Fatalf("slipway %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// resources are the kinds that get reads.
func resources() map[string]schema.GroupVersionResource {
	hosts, core := infrav1.GroupVersion, clusterv1.GroupVersion
	return map[string]schema.GroupVersionResource{
		"sshhost": hosts.WithResource("sshhosts"), "sshmachine": hosts.WithResource("sshmachines"), "sshcluster": hosts.WithResource("sshclusters"),
		"cluster": core.WithResource("clusters"), "machine": core.WithResource("machines"), "machinedeployment": core.WithResource("machinedeployments"),
		"kubeadmcontrolplane": {Group: "controlplane.cluster.x-k8s.io", Version: core.Version, Resource: "kubeadmcontrolplanes"},
	}
}

// get returns a field of an object (KIND/NAME) or of all objects (KINDs) of the management cluster, empty if there is none. It is
// called in loops, in which starting a program each time would occupy the machine.
func (in installation) get(object, path string) string {
	in.Helper()
	kind, name, single := strings.Cut(object, "/")
	resource, ok := resources()[strings.TrimSuffix(kind, "s")]
	if !ok {
		in.Fatalf("%s is not a kind that tests read", kind)
	}
	found, err := in.read(in.objects.Resource(resource).Namespace("default"), name, single)
	if err != nil {
		return ""
	}
	var out strings.Builder
	field := jsonpath.New(object).AllowMissingKeys(true)
	if err := field.Parse(path); err != nil {
		in.Fatal(err)
	}
	if err := field.Execute(&out, found); err != nil {
		return ""
	}
	return out.String()
}

func (in installation) read(objects dynamic.ResourceInterface, name string, single bool) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), defaultWait)
	defer cancel()
	if single {
		o, err := objects.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return o.Object, nil
	}
	list, err := objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.UnstructuredContent(), nil
}

// add adds test hosts to the inventory.
func (in installation) add(machines []host) {
	in.Helper()
	key := in.path("key")
	if err := os.WriteFile(key, machines[0].key, 0o600); err != nil {
		in.Fatal(err)
	}
	for i, m := range machines {
		user := []string{"root", "ops"}[i%2] // every other one with sudo
		in.run("hosts", "add", m.address, "--name", m.name, "--user", user, "--key", key, "--host-key", strings.Join(strings.Fields(m.hostKey)[:2], " "))
	}
}

// available reports whether all hosts are free.
func (in installation) available(n int) error {
	states := in.get("sshhosts", "{.items[*].status.state}")
	if strings.Count(states, "Available") != n {
		return fmt.Errorf("the states are %q", states)
	}
	return nil
}

// TestVirtualIP makes a cluster of three control plane hosts and two workers, and disturbs it while a client writes: the holder
// of the virtual IP address and the leader of etcd are lost, and all control plane machines are replaced with one spare host.
func TestVirtualIP(t *testing.T) {
	enabled(t)
	machines := startHosts(t, "bookworm", 6)
	in := startInstallation(t)
	in.add(machines)
	eventually(t, "the hosts to be available", patience, func() error { return in.available(6) })
	testRefusedAddresses(in, machines)
	create := []string{"create", "cluster", "ha", "--class", "ssh-kubeadm", "--set", "virtualIP=" + virtualIP, "--workers", "2", "--wait-timeout", "30m"}
	if out, err := in.try(append(create, "--control-planes", "5")...); err == nil || !strings.Contains(out, "1 SSHHost is missing") || in.get("clusters", "{.items}") != "[]" {
		t.Fatalf("7 nodes on 6 hosts: %v\n%s", err, out)
	}
	began := time.Now()
	in.run(append(create, "--control-planes", "3")...)
	t.Logf("three control plane hosts and two workers: %.0f s", time.Since(began).Seconds())
	in.run("get", "kubeconfig", "ha", "--output-file", in.path("ha.kubeconfig"))
	ha := clusterAt(t, in.path("ha.kubeconfig"), virtualIP)
	if holders := holdersOf(machines); len(holders) != 1 {
		t.Errorf("hosts %v hold the address", holders)
	}
	w := startWriter(t, ha)
	lose(t, ha, machines, "the holder of the virtual IP address", func() int { return holder(t, machines) })
	lose(t, ha, machines, "the leader of etcd", func() int { return etcdLeader(t, machines) })
	testReplacement(in, ha, machines)
	w.stop()
	in.run("delete", "cluster", "ha")
	eventually(t, "the hosts to be clean", patience, func() error { return in.available(6) })
	if holders := holdersOf(machines); len(holders) > 0 {
		t.Errorf("hosts %v hold the address after the cluster was deleted", holders)
	}
	for _, m := range machines {
		if left, err := command("docker", "exec", m.name, "sh", "-c", "ls -A /etc/slipway 2>/dev/null; ls /etc/systemd/system/slipway-* 2>/dev/null; pgrep keepalived; echo end"); err != nil || left != "end" {
			t.Errorf("%s: %s %v", m.name, left, err)
		}
	}
}

// testRefusedAddresses tries addresses that no cluster can have.
func testRefusedAddresses(in installation, machines []host) {
	in.Helper()
	for name, tc := range map[string]struct{ address, want string }{
		"not allowed": {"198.18.1.1", "hosts.virtualIPs"},
		"injection":   {"198.18.0.98 }", "virtualIP"},
	} {
		out, err := in.try("create", "cluster", "refused", "--class", "ssh-kubeadm", "--workers", "0", "--set", "virtualIP="+tc.address, "--wait-timeout", "60s")
		if err == nil || !strings.Contains(out, tc.want) {
			in.Errorf("%s: %v\n%s", name, err, out)
		}
		_, _ = in.try("delete", "cluster", "refused")
	}
	// An address that responds: it belongs to a host that is not in the inventory.
	run(in.T, "docker", "exec", machines[5].name, "ip", "addr", "add", "198.18.0.97/32", "dev", "eth0")
	in.run("create", "cluster", "taken", "--class", "ssh-kubeadm", "--workers", "0", "--set", "virtualIP=198.18.0.97", "--set", "controlPlaneHostLabels={kubernetes.io/hostname: x}", "--skip-checks", "--wait-timeout", "0")
	_, _ = in.try("kubectl", "label", "sshhost", machines[0].name, "kubernetes.io/hostname=x")
	eventually(in.T, "the address to be refused", patience, func() error {
		if got := in.get("sshcluster/taken", `{.status.conditions[?(@.type=="VirtualIPHeld")].reason}`); got != "VirtualIPInUse" {
			return fmt.Errorf("the reason is %q", got)
		}
		return nil
	})
	in.run("delete", "cluster", "taken")
	run(in.T, "docker", "exec", machines[5].name, "ip", "addr", "del", "198.18.0.97/32", "dev", "eth0")
	eventually(in.T, "the host to be clean", patience, func() error { return in.available(6) })
}

// clusterAt returns the API of a cluster, and checks its endpoint.
func clusterAt(t *testing.T, kubeconfig, address string) api {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout = 5 * time.Second
	if config.Host != "https://"+address+":6443" {
		t.Errorf("the server is %s", config.Host)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return api{Context: t.Context(), client: c}
}

// holdersOf returns the hosts that have the virtual IP address.
func holdersOf(machines []host) (out []int) {
	for i, m := range machines {
		if addresses, err := command("docker", "exec", m.name, "ip", "-o", "addr", "show"); err == nil && strings.Contains(addresses, " "+virtualIP+"/") {
			out = append(out, i)
		}
	}
	return out
}

// holder waits until exactly one host has the virtual IP address.
func holder(t *testing.T, machines []host) (index int) {
	t.Helper()
	eventually(t, "one host to hold the address", patience, func() error {
		holders := holdersOf(machines)
		if len(holders) != 1 {
			return fmt.Errorf("hosts %v", holders)
		}
		index = holders[0]
		return nil
	})
	return index
}

// etcdLeader returns the host with the leader of etcd.
func etcdLeader(t *testing.T, machines []host) (leader int) {
	t.Helper()
	eventually(t, "etcd to have a leader", patience, func() error {
		leader = slices.IndexFunc(machines, func(m host) bool {
			_, err := command("docker", "exec", m.name, "sh", "-c",
				`printf 'GET /metrics HTTP/1.0\r\n\r\n' | /var/lib/slipway/current/bin/socat -t 9 - TCP:127.0.0.1:2381,shut-none | grep -q '^etcd_server_is_leader 1'`)
			return err == nil
		})
		if leader < 0 {
			return errors.New("there is none")
		}
		return nil
	})
	return leader
}

// lose kills a host and starts it again when the cluster works without it.
func lose(t *testing.T, ha api, machines []host, what string, which func() int) {
	t.Helper()
	m := machines[which()]
	run(t, "docker", "kill", m.name)
	began := time.Now()
	eventually(t, "the cluster to work without "+what, patience, func() error {
		_, err := ha.client.CoreV1().Namespaces().Create(ha, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "after-"}}, metav1.CreateOptions{})
		return err
	})
	t.Logf("%s (%s) was lost: the API was back after %.1f s", what, m.name, time.Since(began).Seconds())
	if holders := holdersOf(machines); len(holders) != 1 {
		t.Errorf("hosts %v hold the address", holders)
	}
	run(t, "docker", "start", m.name)
	eventually(t, m.name+" to be Ready again", patience, func() error { return ha.ready(m.name) })
	holder(t, machines)
}

// testReplacement replaces all control plane machines; there is one host more than machines.
func testReplacement(in installation, ha api, machines []host) {
	in.Helper()
	before := in.get("machines", `{.items[?(@.metadata.labels.cluster\.x-k8s\.io/control-plane)].metadata.name}`)
	began := time.Now()
	in.run("alpha", "rollout", "restart", "kubeadmcontrolplane/ha")
	eventually(in.T, "the control plane to be replaced", 2*patience, func() error {
		names := strings.Fields(in.get("machines", "{.items[*].metadata.name}"))
		for _, old := range strings.Fields(before) {
			if slices.Contains(names, old) {
				return fmt.Errorf("%s remains: %v", old, names)
			}
		}
		if ready := in.get("kubeadmcontrolplane/ha", "{.status.readyReplicas} {.status.upToDateReplicas} {.status.replicas}"); ready != "3 3 3" {
			return fmt.Errorf("replicas %s", ready)
		}
		return nil
	})
	in.Logf("three control plane machines were replaced with one spare host: %.0f s", time.Since(began).Seconds())
	if holders := holdersOf(machines); len(holders) != 1 {
		in.Errorf("hosts %v hold the address", holders)
	}
	nodes, err := ha.client.CoreV1().Nodes().List(ha, metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 5 {
		in.Errorf("%d nodes, %v", len(nodes.Items), err)
	}
}

// writer writes objects until it is stopped, and then checks that each acknowledged one exists.
type writer struct {
	t       *testing.T
	ha      api
	cancel  context.CancelFunc
	done    sync.WaitGroup
	written []string
	refused int
}

const writtenTo = "default"

func startWriter(t *testing.T, ha api) *writer {
	ctx, cancel := context.WithCancel(t.Context())
	w := &writer{t: t, ha: ha, cancel: cancel}
	w.done.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "write-" + strconv.Itoa(n)}}
			if _, err := ha.client.CoreV1().ConfigMaps(writtenTo).Create(ctx, o, metav1.CreateOptions{}); err == nil {
				w.written = append(w.written, o.Name)
			} else if !apierrors.IsAlreadyExists(err) {
				w.refused++
			}
			timer := time.NewTimer(100 * time.Millisecond)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			timer.Stop()
		}
	})
	t.Cleanup(cancel)
	return w
}

// stop ends the writer and checks what it wrote.
func (w *writer) stop() {
	w.t.Helper()
	w.cancel()
	w.done.Wait()
	list, err := w.ha.client.CoreV1().ConfigMaps(writtenTo).List(w.ha, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	exists := map[string]bool{}
	for _, o := range list.Items {
		exists[o.Name] = true
	}
	for _, name := range w.written {
		if !exists[name] {
			w.t.Errorf("the acknowledged write %s is lost", name)
		}
	}
	w.t.Logf("%d writes were acknowledged, %d were not", len(w.written), w.refused)
	if len(w.written) < 100 {
		w.t.Error("hardly anything was written")
	}
}
