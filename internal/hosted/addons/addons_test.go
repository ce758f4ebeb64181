package addons_test

import (
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipwayhq/slipway/internal/hosted/addons"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

var server *apiserver.Server // set once, by TestMain

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, apiserver.Options{}, func(s *apiserver.Server) { server = s }))
}

func params() addons.Params {
	return addons.Params{
		ClusterName: "demo", Version: "v1.36.3", Host: "172.31.0.1", Port: 6443, CA: server.Config.CAData,
		ServiceCIDR: "192.0.2.0/24", PodCIDR: "172.31.128.0/17", ServiceDomain: "cluster.local", ImageRepository: "example.test/images",
		CoreDNS: true, KubeProxy: true,
	}
}

// What `kubeadm join` looks for, and the add-ons, are there after Apply, and a second one changes nothing.
func TestApply(t *testing.T) {
	if err := addons.Apply(t.Context(), server.Config, params()); err != nil {
		t.Fatal(err)
	}
	api := kubernetes.NewForConfigOrDie(server.Config)
	joinSteps(t, api)
	images(t, api)
	before := revisions(t, api)
	if err := addons.Apply(t.Context(), server.Config, params()); err != nil {
		t.Fatalf("again: %v", err)
	}
	for name, revision := range revisions(t, api) {
		if before[name] != revision {
			t.Errorf("%s was written again", name)
		}
	}
}

// Clusters of other versions than this build's get the same; each node runs the kube-proxy of its own image where the images
// are those of node images.
func TestApplyToOtherVersions(t *testing.T) {
	api := kubernetes.NewForConfigOrDie(server.Config)
	for version, test := range map[string]struct {
		own  bool
		want string
	}{
		"v1.33.6": {true, "example.test/images/kube-proxy:node"}, "v1.37.2": {true, "example.test/images/kube-proxy:node"},
		"v1.35.4": {false, "example.test/images/kube-proxy:v1.35.4"},
	} {
		p := params()
		p.Version, p.OwnKubeProxy = version, test.own
		if err := addons.Apply(t.Context(), server.Config, p); err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		set, err := api.AppsV1().DaemonSets("kube-system").Get(t.Context(), "kube-proxy", metav1.GetOptions{})
		if err != nil || set.Spec.Template.Spec.Containers[0].Image != test.want {
			t.Errorf("%s: %v, %v", version, set.Spec.Template.Spec.Containers, err)
		}
		config, err := api.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "kubeadm-config", metav1.GetOptions{})
		if err != nil || !strings.Contains(config.Data["ClusterConfiguration"], "kubernetesVersion: "+version) {
			t.Errorf("%s: %v, %v", version, config.Data, err)
		}
	}
}

func joinSteps(t *testing.T, api kubernetes.Interface) {
	t.Helper()
	info, err := api.CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load([]byte(info.Data["kubeconfig"]))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Clusters {
		if c.Server != "https://172.31.0.1:6443" || string(c.CertificateAuthorityData) != string(server.Config.CAData) {
			t.Errorf("cluster-info: %s", c.Server)
		}
	}
	if len(config.Clusters) != 1 || len(config.AuthInfos) != 0 {
		t.Errorf("cluster-info has %d clusters and %d users, want one and none", len(config.Clusters), len(config.AuthInfos))
	}
	for name, key := range map[string]string{"kubeadm-config": "ClusterConfiguration", "kubelet-config": "kubelet"} {
		c, err := api.CoreV1().ConfigMaps("kube-system").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || c.Data[key] == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{
		"kubeadm:get-nodes", "kubeadm:kubelet-bootstrap", "kubeadm:node-autoapprove-bootstrap", "kubeadm:node-autoapprove-certificate-rotation",
	} {
		if _, err := api.RbacV1().ClusterRoleBindings().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// images come from the repository that was named, so that nothing is asked elsewhere.
func images(t *testing.T, api kubernetes.Interface) {
	t.Helper()
	var used []string
	sets, err := api.AppsV1().DaemonSets("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sets.Items {
		for _, c := range append(s.Spec.Template.Spec.InitContainers, s.Spec.Template.Spec.Containers...) {
			used = append(used, c.Image)
		}
	}
	dns, err := api.AppsV1().Deployments("kube-system").Get(t.Context(), "coredns", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	used = append(used, dns.Spec.Template.Spec.Containers[0].Image)
	for _, name := range []string{"kube-proxy", "coredns"} {
		if !strings.Contains(strings.Join(used, " "), name) {
			t.Errorf("no image of %s among %v", name, used)
		}
	}
	for _, image := range used {
		if !strings.HasPrefix(image, "example.test/images/") {
			t.Errorf("image %s is not of the repository that was named", image)
		}
	}
	proxy, err := api.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "kube-proxy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"mode: iptables", "maxPerCore: 0", "clusterCIDR: 172.31.128.0/17"} {
		if !strings.Contains(proxy.Data["config.conf"], s) {
			t.Errorf("kube-proxy is not told %q", s)
		}
	}
}

// revisions of everything that Apply makes, by name.
func revisions(t *testing.T, api kubernetes.Interface) map[string]string {
	t.Helper()
	out := map[string]string{}
	sets, err := api.AppsV1().DaemonSets("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sets.Items {
		out["DaemonSet "+s.Name] = s.ResourceVersion
	}
	for _, namespace := range []string{"kube-system", "kube-public"} {
		maps, err := api.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range maps.Items {
			if m.Name != "kube-root-ca.crt" { // a controller of every API server writes it, in its own time
				out["ConfigMap "+m.Name] = m.ResourceVersion
			}
		}
	}
	return out
}

// How the add-ons fare is told by what the workload cluster reports of them.
func TestInspect(t *testing.T) {
	fresh := apiserver.Start(t, apiserver.Options{})
	api := kubernetes.NewForConfigOrDie(fresh.Config)
	p := params()
	expect := func(what string, want addons.State) {
		t.Helper()
		got, err := addons.Inspect(t.Context(), fresh.Config, p)
		if err != nil || got.NoNodes != want.NoNodes || (want.Problem == "") != (got.Problem == "") || !strings.Contains(got.Problem, want.Problem) {
			t.Errorf("%s: got %+v, %v, want %+v", what, got, err, want)
		}
	}
	expect("nothing applied", addons.State{Problem: "DaemonSet kube-proxy does not exist"})
	p.CA = fresh.Config.CAData
	if err := addons.Apply(t.Context(), fresh.Config, p); err != nil {
		t.Fatal(err)
	}
	expect("no nodes", addons.State{NoNodes: true})
	set, err := api.AppsV1().DaemonSets("kube-system").Get(t.Context(), "kube-proxy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	report := func(available int32) {
		t.Helper()
		set.Status.DesiredNumberScheduled, set.Status.NumberAvailable, set.Status.ObservedGeneration = 2, available, set.Generation
		if set, err = api.AppsV1().DaemonSets("kube-system").UpdateStatus(t.Context(), set, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	report(1)
	const unavailable = "DaemonSet kube-proxy is not available on every Node in the workload cluster"
	expect("one of two nodes", addons.State{Problem: unavailable})
	podOf(t, api, "kube-proxy", "a", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, corev1.ConditionTrue)
	podOf(t, api, "kube-proxy", "b", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, corev1.ConditionFalse)
	expect("a silent kubelet", addons.State{Problem: unavailable + ": not ready on Node b"})
	podOf(t, api, "kube-proxy", "c", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}, corev1.ConditionFalse)
	expect("an image that is missing", addons.State{Problem: unavailable + ": Node c without the image example.test/images/kube-proxy:"})
	for _, node := range []string{"d", "e", "f"} {
		podOf(t, api, "kube-proxy", node, corev1.ContainerState{}, corev1.ConditionFalse)
	}
	expect("many", addons.State{Problem: "; not ready on Nodes b, d, e and 1 more"})
	report(2)
	expect("no DNS", addons.State{Problem: "Deployment coredns is not available in the workload cluster"})
	podOf(t, api, "kube-dns", "", corev1.ContainerState{}, corev1.ConditionFalse)
	expect("no Node for it", addons.State{Problem: "Deployment coredns is not available in the workload cluster: 1 Pods have no Node"})
	dns, err := api.AppsV1().Deployments("kube-system").Get(t.Context(), "coredns", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dns.Status.Replicas, dns.Status.ReadyReplicas, dns.Status.AvailableReplicas = 2, 2, 2
	dns.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
	if _, err := api.AppsV1().Deployments("kube-system").UpdateStatus(t.Context(), dns, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("all", addons.State{})
}

// podOf creates a Pod of an add-on on a Node.
func podOf(t *testing.T, api kubernetes.Interface, app, node string, state corev1.ContainerState, ready corev1.ConditionStatus) {
	t.Helper()
	pods := api.CoreV1().Pods("kube-system")
	p, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: app + "-", Labels: map[string]string{"k8s-app": app}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: app, Image: "x"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: app, State: state}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	if _, err := pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Kubelets that join request serving certificates where that is asked for, and the others' clusters are not touched for it.
func TestSignedServing(t *testing.T) {
	api := kubernetes.NewForConfigOrDie(server.Config)
	for _, signed := range []bool{true, false} {
		p := params()
		p.SignedServing = signed
		if err := addons.Apply(t.Context(), server.Config, p); err != nil {
			t.Fatal(err)
		}
		config, err := api.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "kubelet-config", metav1.GetOptions{})
		if err != nil || strings.Contains(config.Data["kubelet"], "serverTLSBootstrap: true") != signed || !strings.Contains(config.Data["kubelet"], "rotateCertificates: true") {
			t.Errorf("signed %v: %v, %v", signed, config.Data, err)
		}
	}
	p := params()
	p.SignedServing = true
	if p.Hash() == params().Hash() {
		t.Error("the change is not applied")
	}
}

func TestLeftOut(t *testing.T) {
	p := params()
	p.CoreDNS, p.KubeProxy = false, false
	all := params()
	if p.Hash() == all.Hash() || all.Hash() != params().Hash() {
		t.Error("the hash does not stand for what is applied")
	}
	fresh := apiserver.Start(t, apiserver.Options{})
	if err := addons.Apply(t.Context(), fresh.Config, p); err != nil {
		t.Fatal(err)
	}
	sets, err := kubernetes.NewForConfigOrDie(fresh.Config).AppsV1().DaemonSets("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) != 0 {
		t.Errorf("%d DaemonSets, want none (%v)", len(sets.Items), err)
	}
}
