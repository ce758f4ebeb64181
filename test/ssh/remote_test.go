package ssh

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/nodeimage"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// testBundle returns the bundle of the default version from SLIPWAY_TEST_BUNDLES, or one that is built once in a run. After
// `make image`, nothing is compiled for it.
func testBundle(t *testing.T) bundle.Bundle {
	t.Helper()
	b, err := bundleOfRun()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var bundleOfRun = sync.OnceValues(func() (bundle.Bundle, error) {
	if dir := os.Getenv("SLIPWAY_TEST_BUNDLES"); dir != "" {
		return bundle.Store{Dir: dir}.Find(nodeimage.DefaultVersion, runtime.GOARCH)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return bundle.Bundle{}, err
	}
	return bundle.Store{Dir: filepath.Join(cache, "slipway", "test-bundles")}.Build(context.Background(), bundle.BuildOptions{Progress: os.Stderr})
})

// timed reports the duration of a step.
func timed(t *testing.T, what string, f func() error) {
	t.Helper()
	began := time.Now()
	if err := f(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	t.Logf("%-40s %6.1f s", what, time.Since(began).Seconds())
}

// TestHost makes a cluster of two hosts with kubeadm, gives the hosts back, and uses them again.
func TestHost(t *testing.T) {
	enabled(t)
	for _, suite := range suites() {
		t.Run(suite, func(t *testing.T) { testHost(t, suite) })
	}
}

// suites are the releases of Debian to test.
func suites() []string {
	if list := os.Getenv("SLIPWAY_TEST_SSH_SUITES"); list != "" {
		return strings.Split(list, ",")
	}
	return []string{"bookworm"}
}

func testHost(t *testing.T, suite string) {
	all := testBundle(t)
	machines := startHosts(t, suite, 2)
	pool := remote.NewPool(remote.Limits{})
	defer pool.Close()
	ctx := t.Context()
	hosts := []*remote.Host{}
	for i, user := range []string{"root", "ops"} { // the second one with sudo
		h, err := pool.Connect(ctx, machines[i].target(user))
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	checkFresh(t, hosts)
	for round := range 2 {
		claims := []string{strings.Repeat("a", 25) + string(rune('b'+round)), strings.Repeat("c", 25) + string(rune('b'+round))}
		join := joinCommand{machines: machines}
		for i, h := range hosts {
			b := all.ForNode(i == 0)
			timed(t, fmt.Sprintf("record %d", i), func() error { return h.WriteRecord(ctx, remote.Record{ClaimID: claims[i], Name: machines[i].name}) })
			timed(t, fmt.Sprintf("bundle %d, %d MB", i, b.Size()/1e6), func() error { return h.InstallBundle(ctx, b, nil) })
			timed(t, fmt.Sprintf("prepare %d", i), func() error { return h.PrepareNode(ctx, b, remote.NodeSettings{}) })
			timed(t, fmt.Sprintf("bootstrap %d", i), func() error { return bootstrap(ctx, h, claims[i], machines[i], join.data(t, i)) })
		}
		waitReady(t, machines)
		if round == 0 {
			testReboot(t, hosts[1], machines)
		}
		var cleaning sync.WaitGroup
		for i, h := range hosts {
			cleaning.Go(func() {
				began := time.Now()
				left, err := h.Reset(ctx)
				if err != nil || len(left) > 0 {
					t.Errorf("cleaning host %d: %v %v", i, left, err)
				}
				t.Logf("cleaning host %d: %.1f s", i, time.Since(began).Seconds())
				if err := h.DeleteRecord(ctx, claims[i]); err != nil {
					t.Error(err)
				}
			})
		}
		cleaning.Wait()
		if t.Failed() {
			t.FailNow()
		}
		checkFresh(t, hosts)
	}
	for _, h := range hosts {
		if err := h.RemoveBundles(ctx); err != nil {
			t.Error(err)
		}
	}
	if left := run(t, "docker", "exec", machines[0].name, "sh", "-c", "ls -A /var/lib/slipway /etc/slipway 2>/dev/null || true"); left != "" {
		t.Errorf("files remain: %s", left)
	}
}

// checkFresh checks that a host has no node, and passes the checks.
func checkFresh(t *testing.T, hosts []*remote.Host) {
	t.Helper()
	for i, h := range hosts {
		facts, err := h.Facts(t.Context())
		if err != nil || facts.KubeletRunning || facts.HasRecord || facts.ContainerRuntime != "" || facts.CPUs == 0 || facts.MachineIDHash == "" {
			t.Fatalf("host %d: %+v %v", i, facts, err)
		}
		found, err := h.Preflight(t.Context(), remote.PreflightOptions{ControlPlane: true, ManagedBundle: true, Architecture: runtime.GOARCH})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Fatal {
				t.Errorf("host %d: %s: %s", i, f.Check, f)
			}
		}
	}
}

// joinCommand makes bootstrap data.
type joinCommand struct{ machines []host }

// data returns the bootstrap data: kubeadm init on the first host, kubeadm join on the others.
func (j joinCommand) data(t *testing.T, i int) string {
	t.Helper()
	config := fmt.Sprintf(`apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens:
- token: abcdef.0123456789abcdef
nodeRegistration:
  criSocket: unix:///run/containerd/containerd.sock
  imagePullPolicy: Never
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: %s
imageRepository: slipway.dev
networking:
  podSubnet: 198.18.128.0/18
  serviceSubnet: 198.18.192.0/18
dns:
  imageRepository: slipway.dev
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
conntrack: {maxPerCore: 0, min: 0}
`, nodeimage.DefaultVersion)
	verb := "init"
	if i > 0 {
		verb = "join"
		config = fmt.Sprintf(`apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
nodeRegistration:
  criSocket: unix:///run/containerd/containerd.sock
  imagePullPolicy: Never
discovery:
  bootstrapToken:
    token: abcdef.0123456789abcdef
    apiServerEndpoint: %s:6443
    unsafeSkipCAVerification: true
`, j.machines[0].address)
	}
	indented := "    " + strings.ReplaceAll(strings.TrimSpace(config), "\n", "\n    ")
	return "#cloud-config\nwrite_files:\n- path: /run/kubeadm/kubeadm.yaml\n  permissions: '0600'\n  content: |\n" + indented + "\n" +
		"runcmd:\n- kubeadm " + verb + " --config /run/kubeadm/kubeadm.yaml && mkdir -p /run/cluster-api && touch /run/cluster-api/bootstrap-success.complete\n"
}

// bootstrap starts bootstrap data, cuts the connection, and waits for the end of the data.
func bootstrap(ctx context.Context, h *remote.Host, claim string, m host, data string) error {
	err := h.StartBootstrap(ctx, remote.Bootstrap{
		ClaimID: claim, Name: m.name, Hostname: m.name, ProviderID: "ssh://" + claim, Address: m.address, Data: []byte(data), Timeout: patience,
	})
	if err != nil {
		return err
	}
	m.cutConnections()
	for {
		p, err := h.BootstrapProgress(ctx, claim)
		switch {
		case fault.KindOf(err) == fault.Unreachable && err != nil:
			p.State = remote.BootstrapRunning
		case err != nil:
			return err
		case p.State == remote.BootstrapDone:
			return nil
		case p.State != remote.BootstrapRunning:
			return fmt.Errorf("%s: exit status %d %s\n%s", p.State, p.ExitCode, p.Failure, p.Log)
		}
		timer := time.NewTimer(300 * time.Millisecond)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// waitReady writes the configuration of a Pod network on every host, and waits until the nodes are Ready.
func waitReady(t *testing.T, machines []host) {
	t.Helper()
	for i, m := range machines {
		conf := fmt.Sprintf(`{"cniVersion":"1.0.0","name":"test","plugins":[{"type":"ptp","ipMasq":true,"ipam":{"type":"host-local","ranges":[[{"subnet":"198.18.%d.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}},{"type":"portmap","capabilities":{"portMappings":true}}]}`, 128+i)
		run(t, "docker", "exec", m.name, "sh", "-c", "mkdir -p /etc/cni/net.d && printf '%s' '"+conf+"' >/etc/cni/net.d/10-test.conflist")
	}
	client := apiClient(t, machines[0])
	for _, m := range machines {
		eventually(t, "Node "+m.name+" to be Ready", patience, func() error { return client.ready(m.name) })
	}
	eventually(t, "CoreDNS to be Ready", patience, client.dnsReady)
}

// testReboot reboots a host, which must come back as the same node.
func testReboot(t *testing.T, h *remote.Host, machines []host) {
	t.Helper()
	ctx, m := t.Context(), machines[1]
	before, err := h.BootID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// systemd ends the container instead of rebooting the kernel; a machine starts again by itself.
	if err := h.Reboot(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, m.name+" to stop", patience, func() error {
		if run(t, "docker", "inspect", "-f", "{{.State.Running}}", m.name) != "false" {
			return fmt.Errorf("it runs")
		}
		return nil
	})
	if _, err := h.Facts(ctx); fault.KindOf(err) != fault.Unreachable {
		t.Errorf("the host is down: %v", err)
	}
	run(t, "docker", "start", m.name)
	eventually(t, m.name+" to be reachable", patience, func() error {
		_, err := h.BootID(ctx)
		return err
	})
	if after, err := h.BootID(ctx); err != nil || after == before {
		t.Errorf("boot IDs %s and %s: %v", before, after, err)
	}
	p, err := h.BootstrapProgress(ctx, strings.Repeat("c", 25)+"b")
	if err != nil || p.State != remote.BootstrapDone {
		t.Errorf("the node was bootstrapped before the reboot: %+v %v", p, err)
	}
	waitReady(t, machines)
}
