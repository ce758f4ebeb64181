package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
)

// attack is a management cluster with a node, and alice, who has "edit" in namespaces with and without the node's label, and bob, who
// has "view".
type attack struct {
	*testing.T
	admin, alice kubernetes.Interface
}

const (
	unlabelled = "team-a"
	allowed    = "team-b"
)

// S2 and S4: what tenants can do to the API server and to the management node.
func TestAttackerOnManagementCluster(t *testing.T) {
	own := nodes()
	own.Endpoint = netip.MustParseAddrPort("127.0.0.1:0") // no network of nodes is needed
	cfg := ManagementConfig{Dir: datadir.Dir(t.TempDir()), Nodes: own}
	run(t, cfg, func(kubernetes.Interface) {
		admin, err := clientcmd.BuildConfigFromFlags("", cfg.Dir.Kubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		admin.QPS = -1
		as := func(name string) kubernetes.Interface {
			config := rest.CopyConfig(admin)
			if name != "" {
				config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			return client
		}
		a := attack{T: t, admin: as(""), alice: as("alice")}
		a.prepare()
		t.Run("Services", func(t *testing.T) { a.T = t; a.services() })
		t.Run("Pods", func(t *testing.T) { a.T = t; a.pods() })
		t.Run("workloads", func(t *testing.T) { a.T = t; a.workloads() })
		t.Run("lists", func(t *testing.T) { a.T = t; a.lists(as("alice"), as("bob")) })
	})
}

func (a attack) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

func (a attack) prepare() {
	for name, labels := range map[string]map[string]string{
		unlabelled: nil, allowed: {nodeLabel: "allowed"},
		"installed":    {"cluster.x-k8s.io/provider": "infrastructure-x", "clusterctl.cluster.x-k8s.io": ""},
		"cert-manager": {"clusterctl.cluster.x-k8s.io/core": "cert-manager"},
	} {
		_, err := a.admin.CoreV1().Namespaces().Create(a.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
		a.must(err)
		for who, role := range map[string]string{"alice": "edit", "bob": "view"} {
			_, err := a.admin.RbacV1().RoleBindings(name).Create(a.Context(), &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: who}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: who}},
			}, metav1.CreateOptions{})
			a.must(err)
		}
	}
	// Policies and default ServiceAccounts are there a moment later.
	a.await("the policy is in force", func(ctx context.Context) (bool, error) {
		_, err := a.alice.CoreV1().Services(unlabelled).Create(ctx, service(nil), dry())
		return apierrors.IsForbidden(err), nil
	})
	for _, namespace := range []string{unlabelled, allowed, "installed", "cert-manager"} {
		a.await("Pods can be created in "+namespace, func(ctx context.Context) (bool, error) {
			_, err := a.admin.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			return err == nil, nil
		})
	}
}

func (a attack) await(what string, done func(context.Context) (bool, error)) {
	a.Helper()
	if err := wait.PollUntilContextTimeout(a.Context(), 100*time.Millisecond, 2*time.Minute, true, done); err != nil {
		a.Fatalf("waiting until %s: %v", what, err)
	}
}

func dry() metav1.CreateOptions { return metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}} }

func service(change func(*corev1.ServiceSpec)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "mitm"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 6443}}}}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

// Every field that kube-proxy acts on.
func (a attack) services() {
	cases := map[string]struct {
		change func(*corev1.ServiceSpec)
		// dangerous is refused where Services are allowed, too.
		dangerous bool
	}{
		"plain":       {nil, false},
		"externalIPs": {func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"172.16.64.1"} }, true},
		"externalIPs of DNS": {func(s *corev1.ServiceSpec) {
			s.ExternalIPs, s.Ports = []string{"10.255.255.1"}, []corev1.ServicePort{{Port: 53, Protocol: "UDP"}}
		}, true},
		"nodePort": {func(s *corev1.ServiceSpec) {
			s.Type, s.Ports = "NodePort", []corev1.ServicePort{{Port: 6443, NodePort: 30443}}
		}, false},
		"a nodePort that is the kubelet's": {func(s *corev1.ServiceSpec) {
			s.Type, s.Ports = "NodePort", []corev1.ServicePort{{Port: 1, NodePort: 10250}}
		}, true},
		"LoadBalancer":        {func(s *corev1.ServiceSpec) { s.Type, s.LoadBalancerIP = "LoadBalancer", "172.16.64.1" }, false},
		"another's clusterIP": {func(s *corev1.ServiceSpec) { s.ClusterIP = "192.0.2.1" }, true},
		"a clusterIP outside": {func(s *corev1.ServiceSpec) { s.ClusterIP = "172.16.64.1" }, true},
		"externalName": {func(s *corev1.ServiceSpec) {
			s.Type, s.ExternalName, s.Ports = "ExternalName", "metadata.internal", nil
		}, false},
	}
	for name, tc := range cases {
		_, err := a.alice.CoreV1().Services(unlabelled).Create(a.Context(), service(tc.change), dry())
		if err == nil {
			a.Errorf("%s: allowed in a namespace without the label", name)
		}
		// Addresses and ports are not allocated in a dry run.
		made, err := a.alice.CoreV1().Services(allowed).Create(a.Context(), service(tc.change), metav1.CreateOptions{})
		if (err != nil) != tc.dangerous {
			a.Errorf("%s: in a namespace with the label: %v", name, err)
		}
		if err == nil {
			a.must(a.alice.CoreV1().Services(allowed).Delete(a.Context(), made.Name, metav1.DeleteOptions{}))
		}
	}
	made, err := a.alice.CoreV1().Services(allowed).Create(a.Context(), service(nil), metav1.CreateOptions{})
	a.must(err)
	later := made.DeepCopy()
	later.Spec.ExternalIPs = []string{"172.16.64.1"}
	if _, err := a.alice.CoreV1().Services(allowed).Update(a.Context(), later, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		a.Errorf("externalIPs by an update: %v", err)
	}
	made.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "172.16.64.1"}}
	if _, err := a.alice.CoreV1().Services(allowed).UpdateStatus(a.Context(), made, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		a.Errorf("an address of a load balancer in the status: %v", err)
	}
	if _, err := a.alice.CoreV1().Endpoints(allowed).Create(a.Context(), &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "mitm"}}, dry()); !apierrors.IsForbidden(err) {
		a.Errorf("Endpoints: %v", err)
	}
	labels := []byte(`{"metadata":{"labels":{"` + nodeLabel + `":"allowed"}}}`)
	if _, err := a.alice.CoreV1().Namespaces().Patch(a.Context(), unlabelled, "application/merge-patch+json", labels, metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		a.Errorf("alice labels her namespace: %v", err)
	}
}

func pod(change func(*corev1.PodSpec)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mitm"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}}}
	if change != nil {
		change(&p.Spec)
	}
	return p
}

// Every field that the kubelet, the runtime and the scheduler act on.
func (a attack) pods() {
	volume := func(v corev1.VolumeSource) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: v}} }
	}
	security := func(c corev1.SecurityContext) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Containers[0].SecurityContext = &c }
	}
	cases := map[string]struct {
		change    func(*corev1.PodSpec)
		dangerous bool
	}{
		"plain":       {nil, false},
		"hostNetwork": {func(s *corev1.PodSpec) { s.HostNetwork = true }, true},
		"hostPID":     {func(s *corev1.PodSpec) { s.HostPID = true }, true},
		"hostIPC":     {func(s *corev1.PodSpec) { s.HostIPC = true }, true},
		"hostPort": {func(s *corev1.PodSpec) {
			s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 1, HostPort: 6443}}
		}, true},
		"hostPort, init": {func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "i", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 1, HostPort: 6443}}}}
		}, true},
		"hostPath":     {volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}), true},
		"privileged":   {security(corev1.SecurityContext{Privileged: new(true)}), true},
		"capabilities": {security(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}}}), true},
		"procMount":    {security(corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)}), true},
		"sysctls": {func(s *corev1.PodSpec) {
			s.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
		}, true},
		"system-node-critical":    {func(s *corev1.PodSpec) { s.PriorityClassName = "system-node-critical" }, true},
		"system-cluster-critical": {func(s *corev1.PodSpec) { s.PriorityClassName = "system-cluster-critical" }, true},
		"a priority by number":    {func(s *corev1.PodSpec) { s.Priority = new(int32(2000001000)) }, true},
		"another's token":         {func(s *corev1.PodSpec) { s.ServiceAccountName = "no-such" }, true},
		"nodeName":                {func(s *corev1.PodSpec) { s.NodeName = "management-node" }, false},
		"tolerations":             {func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }, false},
	}
	for name, tc := range cases {
		if _, err := a.alice.CoreV1().Pods(unlabelled).Create(a.Context(), pod(tc.change), dry()); err == nil {
			a.Errorf("%s: allowed in a namespace without the label", name)
		}
		if _, err := a.alice.CoreV1().Pods(allowed).Create(a.Context(), pod(tc.change), dry()); (err != nil) != tc.dangerous {
			a.Errorf("%s: in a namespace with the label: %v", name, err)
		}
	}
	critical := pod(func(s *corev1.PodSpec) { s.PriorityClassName = "system-cluster-critical" })
	if _, err := a.alice.CoreV1().Pods("installed").Create(a.Context(), critical, dry()); err != nil {
		a.Errorf("a provider has a system priority: %v", err)
	}
	if _, err := a.alice.CoreV1().Pods("cert-manager").Create(a.Context(), pod(nil), dry()); err != nil {
		a.Errorf("a Pod of cert-manager: %v", err)
	}
	privileged := pod(func(s *corev1.PodSpec) { s.HostNetwork, s.PriorityClassName = true, "system-node-critical" })
	if _, err := a.admin.CoreV1().Pods(metav1.NamespaceSystem).Create(a.Context(), privileged, dry()); err != nil && !strings.Contains(err.Error(), "serviceaccount") {
		a.Errorf("kube-proxy: %v", err)
	}
}

// Who may not run Pods reads that when the workload is created, with what an administrator can do.
func (a attack) workloads() {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "a"}}, Spec: pod(nil).Spec}
	selector, meta := &metav1.LabelSelector{MatchLabels: template.Labels}, metav1.ObjectMeta{Name: "mitm"}
	job := batchv1.JobSpec{Template: *template.DeepCopy()}
	job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	for kind, create := range map[string]func(namespace string) error{
		"Deployment": func(n string) error {
			_, err := a.alice.AppsV1().Deployments(n).Create(a.Context(), &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}, dry())
			return err
		},
		"DaemonSet": func(n string) error {
			_, err := a.alice.AppsV1().DaemonSets(n).Create(a.Context(), &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}, dry())
			return err
		},
		"StatefulSet": func(n string) error {
			_, err := a.alice.AppsV1().StatefulSets(n).Create(a.Context(), &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}}, dry())
			return err
		},
		"ReplicaSet": func(n string) error {
			_, err := a.alice.AppsV1().ReplicaSets(n).Create(a.Context(), &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}}, dry())
			return err
		},
		"Job": func(n string) error {
			_, err := a.alice.BatchV1().Jobs(n).Create(a.Context(), &batchv1.Job{ObjectMeta: meta, Spec: job}, dry())
			return err
		},
		"CronJob": func(n string) error {
			_, err := a.alice.BatchV1().CronJobs(n).Create(a.Context(), &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: job}}}, dry())
			return err
		},
	} {
		if err := create(unlabelled); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "kubectl label namespace "+unlabelled+" "+nodeLabel) {
			a.Errorf("%s in a namespace without the label: %v", kind, err)
		}
		for _, namespace := range []string{allowed, "installed"} {
			if err := create(namespace); err != nil {
				a.Errorf("%s in namespace %s: %v", kind, namespace, err)
			}
		}
	}
}

// A LIST of 50 MB takes more than one seat, of those who may only read, too.
func (a attack) lists(alice, bob kubernetes.Interface) {
	big := map[string]string{"x": strings.Repeat("x", 900_000)}
	for n := range 56 {
		_, err := alice.CoreV1().ConfigMaps(unlabelled).Create(a.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("big-", n)}, Data: big}, metav1.CreateOptions{})
		a.must(err)
	}
	for who, client := range map[string]kubernetes.Interface{"edit": alice, "view": bob} {
		a.await("a LIST of a person with "+who+" costs more than one seat", func(ctx context.Context) (bool, error) {
			before := a.seats()
			for range 3 {
				response := client.CoreV1().RESTClient().Get().Namespace(unlabelled).Resource("configmaps").Do(ctx)
				var code int
				if response.StatusCode(&code); code != http.StatusOK {
					return false, response.Error()
				}
			}
			return a.seats()-before >= 6, nil // two seats at least on every host, as the tests of the level show
		})
	}
}

// seats are all that requests for collections were estimated at.
func (a attack) seats() float64 {
	a.Helper()
	text, err := a.admin.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(a.Context())
	a.must(err)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if strings.HasPrefix(name, "apiserver_flowcontrol_work_estimated_seats_sum{") && strings.Contains(name, `"`+collections+`"`) {
			n, err := strconv.ParseFloat(value, 64)
			a.must(err)
			return n
		}
	}
	return 0
}
