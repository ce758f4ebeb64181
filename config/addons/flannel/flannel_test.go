package flannel

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipwayhq/slipway/internal/fault"
)

func TestObjects(t *testing.T) {
	for name, c := range map[string]struct {
		reason      string
		params      Params
		image, host string
		port, conf  string
	}{
		"hosted": {reason: "a hosted control plane is reached by its address, not by a Service",
			params: Params{PodCIDR: "172.29.128.0/17", APIServerHost: "172.29.0.1", APIServerPort: 6443},
			image:  "slipway.dev/flannel:" + Version, host: "172.29.0.1", port: "6443",
			conf: `{"Network": "172.29.128.0/17", "EnableNFTables": false, "Backend": {"Type": "host-gw"}}`},
		"plain": {reason: "without an address the Service is used; another repository is taken as it is",
			params: Params{PodCIDR: "10.244.0.0/16", ImageRepository: "example.org/x"},
			image:  "example.org/x/flannel:" + Version,
			conf:   `{"Network": "10.244.0.0/16", "EnableNFTables": false, "Backend": {"Type": "host-gw"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(c.params)
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, o := range objects {
				kinds = append(kinds, o.GetKind())
			}
			if diff := cmp.Diff([]string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "DaemonSet"}, kinds); diff != "" {
				t.Fatalf("kinds (-want +got):\n%s", diff)
			}
			var config corev1.ConfigMap
			convert(t, objects[3], &config)
			if diff := cmp.Diff(c.conf, config.Data["net-conf.json"]); diff != "" {
				t.Errorf("%s: configuration (-want +got):\n%s", c.reason, diff)
			}
			var set appsv1.DaemonSet
			convert(t, objects[4], &set)
			check(t, set.Spec.Template.Spec, map[string]string{"image": c.image, "host": c.host, "port": c.port})
		})
	}
}

// check looks at what makes the Pod run on a node that has no network yet.
func check(t *testing.T, pod corev1.PodSpec, want map[string]string) {
	t.Helper()
	if !pod.HostNetwork || len(pod.Tolerations) != 1 || pod.Tolerations[0] != (corev1.Toleration{Operator: corev1.TolerationOpExists}) {
		t.Errorf("the Pod would wait for the network that it makes: %+v", pod.Tolerations)
	}
	got := map[string]string{"host": "", "port": "", "image": pod.Containers[0].Image}
	for _, e := range pod.Containers[0].Env {
		switch e.Name {
		case "KUBERNETES_SERVICE_HOST":
			got["host"] = e.Value
		case "KUBERNETES_SERVICE_PORT":
			got["port"] = e.Value
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flanneld (-want +got):\n%s", diff)
	}
	for _, c := range pod.Containers {
		if c.ImagePullPolicy != corev1.PullIfNotPresent || c.Image != want["image"] {
			t.Errorf("container %s would pull %s", c.Name, c.Image)
		}
	}
}

// convert fails on fields that the API does not have.
func convert(t *testing.T, u unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, into, true); err != nil {
		t.Fatal(err)
	}
}

func TestObjectsInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		params Params
	}{
		"no range":  {"flanneld would refuse every node", Params{}},
		"address":   {"an address inside a range is a mistake more often than a range", Params{PodCIDR: "10.244.1.1/16"}},
		"IPv6":      {"the template is for IPv4", Params{PodCIDR: "fd00::/64"}},
		"no port":   {"a host without a port cannot be reached", Params{PodCIDR: "10.244.0.0/16", APIServerHost: "10.0.0.1"}},
		"high port": {"ports end at 65535", Params{PodCIDR: "10.244.0.0/16", APIServerHost: "10.0.0.1", APIServerPort: 70000}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Objects(c.params)
			var f *fault.Fault
			if !errors.As(err, &f) || f.Kind != fault.Invalid {
				t.Errorf("got %v, want a fault of kind Invalid: %s", err, c.reason)
			}
		})
	}
}
