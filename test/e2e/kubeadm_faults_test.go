package e2e

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
)

// A control plane of one node: the manager is killed at each step of kubeadm init; then a join fails, all Secrets of the authorities are
// deleted, the API hangs, the database of etcd fills up, and the certificate of the API server expires. Each is said, with what to do, and
// ends when that is done.
//
// It takes minutes, too long for `make test`: `make test-kubeadm` runs it.
func TestKubeadmFaults(t *testing.T) {
	if os.Getenv("SLIPWAY_E2E_KUBEADM") == "" {
		t.Skip("make test-kubeadm runs this test")
	}
	in := newInstallation(t)
	in.up()
	in.apply(singleTower(t))
	in.killedAtEachStep(t)
	w := in.untilReady("tower", 1)
	in.healthyTower(t)
	in.initializedOnce(t, w)
	for _, fault := range []struct {
		name string
		run  func(*testing.T, *installation, workload)
	}{
		{"what cannot be is refused", mistakesRefused},
		{"a join fails", joinFails},
		{"the Secrets of the authorities are deleted", authoritiesDeleted},
		{"the API hangs", apiHangs},
		{"the database of etcd is full", databaseFull},
		{"the certificate of the API server expires", certificateExpires},
	} {
		if !t.Run(fault.name, func(t *testing.T) { fault.run(t, in.with(t), w.with(t)) }) {
			return // the next would find what this one left
		}
	}
	instance := in.instance()
	in.lasts("delete", "cluster", "tower")
	if left := in.leftovers(instance); len(left) > 0 {
		t.Errorf("left on the host: %v", left)
	}
}

// singleTower is examples/kubeadm.yaml without workers, with a database of etcd that is soon full.
func singleTower(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../examples/kubeadm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, change := range [][2]string{
		{"demo", "tower"}, {"172.29.", freeNetwork(t)},
		{"      imageRepository: slipway.dev\n", "      imageRepository: slipway.dev\n      etcd: {local: {extraArgs: [{name: quota-backend-bytes, value: \"33554432\"}]}}\n"},
		{"  clusterName: tower\n  replicas: 1\n", "  clusterName: tower\n  replicas: 0\n"},
	} {
		if !strings.Contains(text, change[0]) {
			t.Fatalf("examples/kubeadm.yaml has no %q", change[0])
		}
		text = strings.ReplaceAll(text, change[0], change[1])
	}
	return text
}

// killedAtEachStep kills the manager as soon as each step of the first Machine is seen.
func (in *installation) killedAtEachStep(t *testing.T) {
	t.Helper()
	has := func(object, path string) func() bool { return func() bool { return in.get(object, path) != "" } }
	for _, step := range []struct {
		name string
		seen func() bool
	}{
		{"the network is there", has("localcluster/tower", "{.status.initialization.provisioned}")},
		{"an authority is generated", has("secret/tower-ca", "{.metadata.uid}")},
		{"the Machine is created", has("machines", "{.items[*].metadata.name}")},
		{"the lock is taken", has("configmap/tower-lock", "{.metadata.uid}")},
		{"the bootstrap data is written", has("kubeadmconfigs", "{.items[*].status.dataSecretName}")},
		{"the container runs", func() bool {
			return len(docker(t, "ps", "-q", "--filter", "label=dev.slipway.instance="+in.instance())) > 0
		}},
		{"the Machine has an address", has("machines", "{.items[*].status.addresses}")},
		{"the infrastructure is provisioned", has("machines", "{.items[*].status.initialization.infrastructureProvisioned}")},
		{"the control plane is initialized", has("kubeadmcontrolplane/tower", "{.status.initialization.controlPlaneInitialized}")},
		{"the Node is found", has("machines", "{.items[*].status.nodeRef.name}")},
	} {
		eventually(t, long, step.name, func() error {
			if !step.seen() {
				return fmt.Errorf("not yet\n%s", in.picture("tower"))
			}
			return nil
		})
		in.killManager(t, step.name)
	}
}

// killManager kills the manager, and waits for the next one.
func (in *installation) killManager(t *testing.T, at string) {
	t.Helper()
	var pid int
	eventually(t, short, "a manager", func() error {
		if pid = in.planeStatus().Management.Manager.PID; pid == 0 {
			return fmt.Errorf("none")
		}
		return nil
	})
	t.Logf("the manager is killed when %s", at)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, short, "another manager", func() error {
		if now := in.planeStatus().Management.Manager.PID; now == 0 || now == pid {
			return fmt.Errorf("process %d", now)
		}
		return nil
	})
}

// initializedOnce sees that there is one of everything, and that the cluster has the authorities of the Secrets.
func (in *installation) initializedOnce(t *testing.T, w workload) {
	t.Helper()
	for _, kind := range []string{"machines", "kubeadmconfigs", "localmachines"} {
		if got := strings.Fields(in.get(kind, "{.items[*].metadata.name}")); len(got) != 1 {
			t.Errorf("%s: %v, want one", kind, got)
		}
	}
	if got := docker(t, "ps", "-aq", "--filter", "label=dev.slipway.instance="+in.instance()); len(got) != 1 {
		t.Errorf("%d containers", len(got))
	}
	until(t, short, "the lock", "", func() string { return in.get("configmap/tower-lock", "{.metadata.uid}") })
	if got := w.controlPlaneNodes(); len(got) != 1 {
		t.Errorf("nodes: %v", got)
	}
	node := in.container(t, w.controlPlaneNodes()[0])
	for secret, file := range authorityFiles() {
		if onNode := in.onNode(t, node, "cat", "/etc/kubernetes/pki/"+file[0]); strings.TrimSpace(onNode) != strings.TrimSpace(string(in.secret(t, secret).Data[corev1.TLSCertKey])) {
			t.Errorf("Secret %s is not what the node has", secret)
		}
	}
}

// authorityFiles are certificate and key on the node of each Secret.
func authorityFiles() map[string][2]string {
	return map[string][2]string{
		"tower-ca": {"ca.crt", "ca.key"}, "tower-etcd": {"etcd/ca.crt", "etcd/ca.key"},
		"tower-proxy": {"front-proxy-ca.crt", "front-proxy-ca.key"}, "tower-sa": {"sa.pub", "sa.key"},
	}
}

// onNode runs a command in a container.
func (in *installation) onNode(t *testing.T, container string, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", append([]string{"exec", container}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (in *installation) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := json.Unmarshal([]byte(in.kubectl("get", "secret", name, "-o", "json")), secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// healthyTower waits until the control plane is as it should be.
func (in *installation) healthyTower(t *testing.T) {
	t.Helper()
	for _, condition := range []string{"CertificatesAvailable", "Available", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "MachinesReady", "MachinesUpToDate"} {
		eventually(t, long, condition+" of the control plane", func() error {
			if got := in.condition("kubeadmcontrolplane/tower", condition); !strings.HasPrefix(got, "True") {
				return fmt.Errorf("%s\n%s", got, in.picture("tower"))
			}
			return nil
		})
	}
}

// mistakesRefused makes mistakes that people make. Each is refused, with what is wrong and what to do.
func mistakesRefused(t *testing.T, in *installation, _ workload) {
	for patch, want := range map[string]string{
		`{"spec":{"replicas":2}}`:        "spec.replicas: Forbidden: cannot be even with managed etcd: 2 members tolerate no more failures than 1; use 1 or 3",
		`{"spec":{"version":"v1.38.0"}}`: "spec.version: Forbidden: cannot change from v1.36.3 to v1.38.0: upgrade one minor version at a time, to v1.37 first",
		`{"spec":{"kubeadmConfigSpec":{"clusterConfiguration":{"certificatesDir":"/d"}}}}`: "spec.kubeadmConfigSpec.clusterConfiguration.certificatesDir: Forbidden: " +
			"cannot be changed, because the cluster and its existing Machines use it; restore the previous value",
	} {
		if out, err := in.try("kubectl", "patch", "kubeadmcontrolplane", "tower", "--type", "merge", "-p", patch); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s %v, want %s", patch, out, err, want)
		}
	}
	if out, err := in.try("kubectl", "scale", "kubeadmcontrolplane", "tower", "--replicas", "2"); err == nil || !strings.Contains(err.Error(), "use 1 or 3") {
		t.Errorf("scale: %s %v", out, err)
	}
}

// joinFails has a Machine of a new spec join in vain: what kubeadm said is in the conditions of the Machine and of the control plane. When the
// spec is corrected, the Machine is replaced, and the old one after it.
func joinFails(t *testing.T, in *installation, w workload) {
	before := w.controlPlaneNodes()
	spec := func(command string) {
		in.kubectl("patch", "kubeadmcontrolplane", "tower", "--type", "merge", "-p", fmt.Sprintf(`{"spec":{"kubeadmConfigSpec":{"preKubeadmCommands":[%q]}}}`, command))
	}
	spec("mkdir -p /etc/kubernetes/manifests && touch /etc/kubernetes/manifests/kube-scheduler.yaml")
	const said = "FileAvailable--etc-kubernetes-manifests-kube-scheduler.yaml"
	untilContains(t, long, "the Machine says what kubeadm said", said, func() string {
		return in.get("machines", `{range .items[*].status.conditions[?(@.type=="InfrastructureReady")]}{.message}{"\n"}{end}`)
	})
	untilContains(t, short, "so does the control plane", said, func() string { return in.condition("kubeadmcontrolplane/tower", "MachinesReady") })
	untilContains(t, short, "so does the tree", said, func() string { return in.picture("tower") })
	failed := in.machines()
	t.Log(in.condition("kubeadmcontrolplane/tower", "MachinesReady"))
	if got := w.controlPlaneNodes(); !slices.Equal(got, before) {
		t.Errorf("nodes %v, before %v", got, before)
	}
	spec("true")
	eventually(t, 2*long, "another node", func() error {
		now, nodes := in.machines(), w.controlPlaneNodes()
		if len(now) != 1 || slices.Contains(failed, now[0]) || len(nodes) != 1 || len(w.readyNodes()) != 1 || slices.Contains(before, nodes[0]) {
			return fmt.Errorf("machines %v, nodes %v\n%s", now, nodes, in.picture("tower"))
		}
		return nil
	})
	in.healthyTower(t)
}

// authoritiesDeleted deletes the Secrets from which everything of the cluster was signed. No other is generated; the content of the node gives
// them back.
func authoritiesDeleted(t *testing.T, in *installation, w workload) {
	kubeconfig, node := in.run("get", "kubeconfig", "tower"), in.container(t, w.controlPlaneNodes()[0])
	before := map[string]*corev1.Secret{}
	for name := range authorityFiles() {
		before[name] = in.secret(t, name)
		in.kubectl("delete", "secret", name)
	}
	untilContains(t, short, "which is gone, and what to do", "Secret tower-ca does not exist, and its content cannot be generated again, because the cluster depends on the original: until it is restored, no Machine can join", func() string {
		return in.condition("kubeadmcontrolplane/tower", "CertificatesAvailable")
	})
	in.killManager(t, "the Secrets are gone")
	in.kubectl("annotate", "kubeadmcontrolplane", "tower", "seen=by-the-next-manager")
	untilContains(t, short, "the next manager says so, too", "Secret tower-etcd", func() string {
		return in.condition("kubeadmcontrolplane/tower", "EtcdClusterHealthy")
	})
	t.Log(in.condition("kubeadmcontrolplane/tower", "CertificatesAvailable"), "\n", in.condition("kubeadmcontrolplane/tower", "EtcdClusterHealthy"))
	w.kubectl("get", "nodes")
	for name, files := range authorityFiles() {
		if got := in.get("secret/"+name, "{.metadata.uid}"); got != "" {
			t.Errorf("Secret %s was generated", name)
		}
		var values []string
		for _, file := range files {
			values = append(values, base64.StdEncoding.EncodeToString([]byte(in.onNode(t, node, "cat", "/etc/kubernetes/pki/"+file))))
		}
		in.apply(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret", "metadata": {"name": %q,
			"labels": {"cluster.x-k8s.io/cluster-name": "tower"}}, "data": {"tls.crt": %q, "tls.key": %q}}`, name, values[0], values[1]))
		if now := in.secret(t, name); strings.TrimSpace(string(now.Data[corev1.TLSCertKey])) != strings.TrimSpace(string(before[name].Data[corev1.TLSCertKey])) {
			t.Errorf("Secret %s has another certificate than before", name)
		}
	}
	in.healthyTower(t)
	if now := in.run("get", "kubeconfig", "tower"); now != kubeconfig {
		t.Errorf("the kubeconfig was written")
	}
}

// apiHangs freezes the API server, and its kubelet, which would restart it: it takes connections and does not answer. Then the whole node is
// frozen, of which Docker knows. Nothing is replaced.
func apiHangs(t *testing.T, in *installation, w workload) {
	machines, node := in.machines(), in.container(t, w.controlPlaneNodes()[0])
	signal := func(name string) {
		in.onNode(t, node, "bash", "-c", `for p in /proc/[0-9]*; do [ "$(cat $p/comm)" != kube-apiserver ] || kill -`+name+` ${p#/proc/}; done`)
	}
	for _, hang := range []struct {
		said         string
		freeze, thaw func()
	}{
		{"The workload cluster is not connected", func() { in.onNode(t, node, "systemctl", "stop", "kubelet"); signal("STOP") }, func() { signal("CONT"); in.onNode(t, node, "systemctl", "start", "kubelet") }},
		{"it is paused: docker unpause", func() { docker(t, "pause", node) }, func() { docker(t, "unpause", node) }},
	} {
		hang.freeze()
		eventually(t, long, "the control plane says so: "+hang.said, func() error {
			if got := in.condition("kubeadmcontrolplane/tower", "Available"); strings.HasPrefix(got, "True") || !strings.Contains(got, hang.said) {
				return fmt.Errorf("%s\n%s", got, in.picture("tower"))
			}
			return nil
		})
		t.Log(in.condition("kubeadmcontrolplane/tower", "Available"))
		hang.thaw()
		in.healthyTower(t)
		if now := in.machines(); !slices.Equal(now, machines) {
			t.Errorf("machines %v, before %v", now, machines)
		}
	}
}

// databaseFull writes until etcd takes no more, and then does what the condition says. Other errors are those of a busy host.
func databaseFull(t *testing.T, in *installation, w workload) {
	random := make([]byte, 350<<10)
	var refused error
	for n := 0; refused == nil || !strings.Contains(refused.Error(), "database space exceeded"); n++ {
		if n > 200 {
			t.Fatalf("the database takes more than its quota; the last error: %v", refused)
		}
		if _, err := rand.Read(random); err != nil {
			t.Fatal(err)
		}
		_, refused = w.tryApply(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "full-%d", "labels": {"full": ""}}, "binaryData": {"x": %q}}`,
			n, base64.StdEncoding.EncodeToString(random)))
	}
	untilContains(t, long, "the alarm, and what to do", "NOSPACE: the database has reached its quota", func() string {
		return in.condition("kubeadmcontrolplane/tower", "EtcdClusterHealthy")
	})
	t.Log(in.condition("kubeadmcontrolplane/tower", "EtcdClusterHealthy"))
	w.kubectl("delete", "configmaps", "-l", "full")
	client := in.etcdClient(t, w.controlPlaneNodes()[0])
	status, err := client.Status(t.Context(), client.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), status.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Defragment(t.Context(), client.Endpoints()[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	in.healthyTower(t)
	w.kubectl("create", "configmap", "afterwards")
}

// tryApply applies a manifest to the workload cluster.
func (w workload) tryApply(t *testing.T, manifest string) (string, error) {
	t.Helper()
	file := t.TempDir() + "/manifest.yaml"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	return w.try("create", "-f", file)
}

// certificateExpires has the API server show a certificate for two minutes more. When it is over, the Machine and what to do are named; renewed on
// the node, as the condition says, everything is well again.
func certificateExpires(t *testing.T, in *installation, w workload) {
	name := w.controlPlaneNodes()[0]
	node, machine := in.container(t, name), in.machines()[0]
	const path = "/etc/kubernetes/pki/apiserver."
	expiry := in.issuesServing(t, node, path, 2*time.Minute)
	presents := func() time.Time {
		conn, err := tls.Dial("tcp", in.address(t, node)+":6443", &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // only the certificate is read
		if err != nil {
			return time.Time{}
		}
		defer func() { _ = conn.Close() }()
		return conn.ConnectionState().PeerCertificates[0].NotAfter
	}
	eventually(t, long, "the API server presents it", func() error {
		if at := presents(); !at.Equal(expiry) {
			return fmt.Errorf("it presents one until %v", at)
		}
		return nil
	})
	config := in.get("machine/"+machine, "{.spec.bootstrap.configRef.name}")
	const annotation = "machine.cluster.x-k8s.io/certificates-expiry"
	in.kubectl("annotate", "kubeadmconfig", config, annotation+"-")
	noted := func() string {
		return in.get("kubeadmconfig/"+config, `{.metadata.annotations.machine\.cluster\.x-k8s\.io/certificates-expiry}`)
	}
	until(t, long, "until when it is valid", expiry.UTC().Format(time.RFC3339), noted)
	said := fmt.Sprintf("The certificate of the API server on Node %s expired on %s", name, expiry.UTC().Format(time.RFC3339))
	untilContains(t, long, "the Machine says so", said, func() string { return in.condition("machine/"+machine, "APIServerPodHealthy") })
	untilContains(t, long, "the control plane says so", said, func() string { return in.condition("kubeadmcontrolplane/tower", "ControlPlaneComponentsHealthy") })
	untilContains(t, long, "so does the load balancer", "the certificate of its API server expired on", func() string {
		return in.get("localcluster/tower", "{.status.conditions[*].message}")
	})
	t.Log(in.condition("kubeadmcontrolplane/tower", "Available"))
	t.Log(in.onNode(t, node, "kubeadm", "certs", "renew", "apiserver"))
	eventually(t, long, "what is noted of the new one", func() error {
		if at, err := time.Parse(time.RFC3339, noted()); err != nil || time.Until(at) < 300*24*time.Hour {
			return fmt.Errorf("%s\n%s", noted(), in.picture("tower"))
		}
		return nil
	})
	in.healthyTower(t)
	if now := in.machines(); !slices.Equal(now, []string{machine}) {
		t.Errorf("machines %v, before %s", now, machine)
	}
}

// issuesServing signs what the API server of a node serves with, for a short time.
func (in *installation) issuesServing(t *testing.T, node, path string, lifetime time.Duration) time.Time {
	t.Helper()
	ca := in.secret(t, "tower-ca")
	authority, err := tls.X509KeyPair(ca.Data[corev1.TLSCertKey], ca.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	template, err := pki.ParseCert([]byte(in.onNode(t, node, "cat", path+"crt")))
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(lifetime).Truncate(time.Second)
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, template.PublicKey, authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("docker", "exec", "-i", node, "sh", "-c", "cat > "+path+"crt")
	cmd.Stdin = strings.NewReader(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return template.NotAfter
}

// address of a container.
func (in *installation) address(t *testing.T, container string) string {
	t.Helper()
	return docker(t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", container)[0]
}
