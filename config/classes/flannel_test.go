package classes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/config/classes"
)

// daemonSet reads the manifest strictly, and returns what is to run on every node.
func daemonSet(t *testing.T) corev1.PodSpec {
	t.Helper()
	set := &appsv1.DaemonSet{}
	into := map[string]any{
		"ServiceAccount": &corev1.ServiceAccount{}, "ClusterRole": &rbacv1.ClusterRole{},
		"ClusterRoleBinding": &rbacv1.ClusterRoleBinding{}, "DaemonSet": set,
	}
	var kinds []string
	for _, document := range strings.Split(classes.FlannelManifest(), "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict([]byte(document), into[head.Kind]); err != nil {
			t.Fatalf("%s: %v", head.Kind, err)
		}
		kinds = append(kinds, head.Kind)
	}
	if diff := cmp.Diff([]string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "DaemonSet"}, kinds); diff != "" {
		t.Fatalf("kinds (-want +got):\n%s", diff)
	}
	return set.Spec.Template.Spec
}

func TestManifest(t *testing.T) {
	pod := daemonSet(t)
	if !pod.HostNetwork || len(pod.Tolerations) != 1 || pod.Tolerations[0] != (corev1.Toleration{Operator: corev1.TolerationOpExists}) {
		t.Errorf("the Pod would wait for the network that it makes: %+v", pod.Tolerations)
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) { // from the node image, as package nodeimage tests
		if c.ImagePullPolicy != corev1.PullIfNotPresent {
			t.Errorf("container %s would pull %s", c.Name, c.Image)
		}
	}
}

// The init container's script is run here, over what kubeadm writes into the ConfigMap of kube-proxy.
func TestNetworkOfTheCluster(t *testing.T) {
	pod := daemonSet(t)
	const conf = `{"Network": "172.29.128.0/17", "EnableNFTables": false, "Backend": {"Type": "host-gw"}}`
	for name, tc := range map[string]struct{ reason, config, want string }{
		"one family": {"the range of Pods", "kind: KubeProxyConfiguration\nclusterCIDR: 172.29.128.0/17\nmode: iptables\n", conf},
		"quoted":     {"as YAML may write it", `clusterCIDR: "172.29.128.0/17"` + "\n", conf},
		"two":        {"flannel's host-gw is for IPv4", "clusterCIDR: fd00::/64,172.29.128.0/17\n", conf},
		"none":       {"it says what to do", `clusterCIDR: ""` + "\n", ""},
		"IPv6 alone": {"it says what to do", "clusterCIDR: fd00::/64\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "config.conf"), []byte(tc.config), 0o600); err != nil {
				t.Fatal(err)
			}
			script := strings.NewReplacer("/etc/kube-proxy", dir, "/etc/kube-flannel", dir).Replace(pod.InitContainers[0].Args[0])
			out, err := exec.Command("sh", "-ec", script).CombinedOutput()
			if tc.want == "" {
				if err == nil || !strings.Contains(string(out), "set spec.clusterNetwork.pods") {
					t.Errorf("%s: %v, %s", tc.reason, err, out)
				}
				return
			}
			got, readErr := os.ReadFile(filepath.Join(dir, "net-conf.json"))
			if err != nil || readErr != nil || strings.TrimSpace(string(got)) != tc.want {
				t.Errorf("%s: got %s, %v, %v: %s", tc.reason, got, err, readErr, out)
			}
		})
	}
}

// Nodes in different subnets need encapsulation, and their interface has any name.
func TestVXLAN(t *testing.T) {
	text := classes.FlannelVXLANManifest()
	for _, part := range []string{`\"Type\": \"vxlan\"`, "--iface=$(NODE_IP)", "{name: NODE_IP", "fieldPath: status.hostIP"} {
		if !strings.Contains(strings.ReplaceAll(text, "- name: NODE_IP", "{name: NODE_IP"), part) {
			t.Errorf("it has no %s", part)
		}
	}
	for _, part := range []string{"host-gw", "eth0"} {
		if strings.Contains(text, part) {
			t.Errorf("it still has %s", part)
		}
	}
}
