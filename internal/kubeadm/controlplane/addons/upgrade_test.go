package addons

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/test/testkit"
)

const configuration = `apiServer: {}
apiVersion: kubeadm.k8s.io/v1beta4
clusterName: c
dns: {}
etcd: {local: {dataDir: /var/lib/etcd}}
imageRepository: example.org/k8s
kind: ClusterConfiguration
kubernetesVersion: v1.35.4
`

// oldCorefile is one that changes on the way from 1.6.7 to 1.8.0.
const oldCorefile = `.:53 {
    errors
    health
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        upstream
        fallthrough in-addr.arpa ip6.arpa
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
`

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}
}

// left is a cluster as kubeadm leaves it.
func left() []client.Object {
	pod := func(container, image string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "sidecar", Image: "s"}, {Name: container, Image: image}}}}
	}
	dns := pod(dnsName, "example.org/k8s/coredns:v1.6.7")
	dns.Spec.Volumes = []corev1.Volume{{Name: "config-volume", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "coredns"}, Items: []corev1.KeyToPath{{Key: "Corefile", Path: "Corefile"}},
	}}}}
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta("kubeadm-config"), Data: map[string]string{"ClusterConfiguration": configuration, "other": "stays"}},
		&corev1.ConfigMap{ObjectMeta: meta("coredns"), Data: map[string]string{"Corefile": oldCorefile}},
		&appsv1.DaemonSet{ObjectMeta: meta("kube-proxy"), Spec: appsv1.DaemonSetSpec{Template: pod("kube-proxy", "example.org/k8s/kube-proxy:v1.35.4")}},
		&appsv1.Deployment{ObjectMeta: meta("coredns"), Spec: appsv1.DeploymentSpec{Template: dns}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:coredns"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"services"}}}},
	}
}

func desired(version, dnsTag string) desiredState {
	return desiredState{Version: version, Cluster: bootstrapv1.ClusterConfiguration{ImageRepository: "example.org/k8s", DNS: bootstrapv1.DNS{ImageTag: dnsTag}}}
}

func found(t *testing.T, objs ...client.Object) KubeadmState {
	t.Helper()
	f, err := Read(t.Context(), fake.NewClientBuilder().WithObjects(objs...).Build(), time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Everything that a Machine needs is written before it joins, by a controller whose writes fail; then nothing is left to do.
func TestBefore(t *testing.T) { // KC-21
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return fake.NewClientBuilder().WithObjects(left()...) }, func(t *testing.T, c client.WithWatch) {
		d := desired("v1.36.3", "v1.8.0")
		d.Cluster.APIServer.CertSANs = []string{"a.b"}
		writes := 0
		for range 20 {
			f, err := Read(t.Context(), c, time.Unix(1, 0))
			if err != nil {
				t.Fatal(err)
			}
			changes, problem := ChangesBeforeJoin(f, d)
			if problem != "" {
				t.Fatal(problem)
			}
			if len(changes) == 0 {
				break
			}
			writes++
			for _, change := range changes {
				if err := Apply(t.Context(), kube.NewWriter(c, "test"), change); err != nil {
					if !errors.Is(err, testkit.ErrInjected) {
						t.Fatal(err)
					}
					break
				}
			}
		}
		f, err := Read(t.Context(), c, time.Unix(1, 0))
		if changes, problem := ChangesBeforeJoin(f, d); err != nil || len(changes) > 0 || problem != "" || writes == 0 {
			t.Errorf("%v %q %v after %d rounds", changes, problem, err, writes)
		}
		config := f.Config.Data["ClusterConfiguration"]
		if !strings.Contains(config, "kubernetesVersion: v1.36.3") || !strings.Contains(config, "a.b") || !strings.Contains(config, "clusterName: c") || f.Config.Data["other"] != "stays" {
			t.Errorf("kubeadm-config:\n%s", config)
		}
		binding := &rbacv1.ClusterRoleBinding{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "kubeadm:cluster-admins"}, binding); err != nil || binding.RoleRef.Name != "cluster-admin" || binding.Subjects[0].Name != "kubeadm:cluster-admins" {
			t.Errorf("%+v, %v", binding, err)
		}
		role := &rbacv1.Role{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "kubeadm:kubelet-config"}, role); err != nil || role.Rules[0].ResourceNames[0] != "kubelet-config" {
			t.Errorf("%+v, %v", role, err)
		}
	})
}

// What is there stays: a role that exists is never changed, and without a clusterConfiguration only the version follows.
func TestBeforeChangesLittle(t *testing.T) { // KC-21
	var all []client.Object
	for _, role := range roles() {
		if r, is := role.(*rbacv1.Role); is {
			r.Rules = nil // changed by a person
		}
		all = append(all, role)
	}
	f := found(t, append(all, left()...)...)
	changes, problem := ChangesBeforeJoin(f, desiredState{Version: "v1.36.3"})
	if len(changes) != 1 || problem != "" || changes[0].String() != "change ConfigMap kubeadm-config of the workload cluster: kubernetesVersion of the ClusterConfiguration for version v1.36.3" {
		t.Errorf("%v %s", changes, problem)
	}
	if changes, problem := ChangesBeforeJoin(f, desiredState{Version: "v1.35.4"}); len(changes) > 0 || problem != "" {
		t.Errorf("of the same version: %v %s", changes, problem)
	}
}

func TestBeforeProblems(t *testing.T) { // KC-21
	for name, tc := range map[string]struct {
		data    map[string]string
		version string
		want    string
	}{
		"none":       {nil, "v1.36.3", "does not exist: restore it"},
		"no key":     {map[string]string{}, "v1.36.3", `has API version ""`},
		"old":        {map[string]string{"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/v1beta1"}, "v1.36.3", "only kubeadm.k8s.io/v1beta3 and"},
		"garbage":    {map[string]string{"ClusterConfiguration": "\x00"}, "v1.36.3", "is not YAML"},
		"no version": {map[string]string{"ClusterConfiguration": configuration}, "x", `"x" is not a Kubernetes version`},
	} {
		f := KubeadmState{}
		if tc.data != nil {
			f.Config = &corev1.ConfigMap{ObjectMeta: meta("kubeadm-config"), Data: tc.data}
		}
		if changes, problem := ChangesBeforeJoin(f, desiredState{Version: tc.version}); len(changes) > 0 || !strings.Contains(problem, tc.want) {
			t.Errorf("%s: %v %q", name, changes, problem)
		}
	}
	if _, problem := ChangesBeforeJoin(KubeadmState{Problem: "not connected"}, desiredState{}); problem != "not connected" {
		t.Errorf("unread: %q", problem)
	}
}

// CoreDNS goes to another version with its Corefile, by a controller whose writes fail: at no time do Pods of the old version mount the
// Corefile of the new one.
func TestCoreDNS(t *testing.T) { // KC-22, KC-23
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return fake.NewClientBuilder().WithObjects(left()...) }, func(t *testing.T, c client.WithWatch) {
		d := desired("v1.36.3", "v1.8.0")
		for range 20 {
			f, err := Read(t.Context(), c, time.Unix(1, 0))
			if err != nil {
				t.Fatal(err)
			}
			mounted, image := f.Corefile.Data[*volumeKey(f.DNS)], imageOf(f.DNS.Spec.Template.Spec, dnsName)
			if isNew := strings.HasSuffix(image, "v1.8.0"); strings.Contains(mounted, "upstream") == isNew {
				t.Fatalf("%s mounts\n%s", image, mounted)
			}
			all := PlanUpgrades(f, d)
			if problems := problems(all); len(problems) > 0 {
				t.Fatal(problems)
			}
			for _, change := range Changes(all) {
				if err := Apply(t.Context(), kube.NewWriter(c, "test"), change); err != nil {
					if !errors.Is(err, testkit.ErrInjected) {
						t.Fatal(err)
					}
					break
				}
			}
		}
		f, err := Read(t.Context(), c, time.Unix(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{`kube-proxy has image "example.org/k8s/kube-proxy:v1.36.3"`, `CoreDNS has image "example.org/k8s/coredns:v1.8.0"`}
		if diff := cmp.Diff(want, states(PlanUpgrades(f, d))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if f.Corefile.Data["Corefile-backup"] != oldCorefile || strings.Contains(f.Corefile.Data["Corefile"], "upstream") || !strings.Contains(f.Corefile.Data["Corefile"], "kubernetes cluster.local") {
			t.Errorf("Corefile %v", f.Corefile.Data)
		}
		if !strings.Contains(f.Config.Data["ClusterConfiguration"], "imageTag: v1.8.0") || !readsEndpointSlices(f.DNSRole) || !tolerates(f.DNS.Spec.Template.Spec) ||
			f.DNS.Spec.Template.Spec.Containers[0].Image != "s" || *volumeKey(f.DNS) != "Corefile" {
			t.Errorf("%+v\n%+v\n%s", f.DNS.Spec.Template.Spec, f.DNSRole, f.Config.Data)
		}
	})
}

func TestAfter(t *testing.T) { // KC-22, KC-23
	with := func(change func(f *KubeadmState, d *desiredState)) func(*KubeadmState, *desiredState) { return change }
	setTo := func(proxy, dns string) func(*KubeadmState, *desiredState) {
		return func(f *KubeadmState, _ *desiredState) {
			f.Proxy.Spec.Template.Spec.Containers[1].Image = proxy
			f.DNS.Spec.Template.Spec.Containers[1].Image = dns
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		change  func(*KubeadmState, *desiredState)
		changes []string
		says    []string
	}{
		"up to date": {"", with(func(_ *KubeadmState, d *desiredState) { d.Version, d.Cluster.DNS.ImageTag = "v1.35.4", "v1.6.7" }), nil,
			[]string{`kube-proxy has image "example.org/k8s/kube-proxy:v1.35.4"`, `CoreDNS has image "example.org/k8s/coredns:v1.6.7"`}},
		"a build's version": {"a tag has no plus", with(func(_ *KubeadmState, d *desiredState) { d.Version, d.Cluster.DNS = "v1.36.3+b.1", bootstrapv1.DNS{} }),
			[]string{"change DaemonSet kube-proxy of the workload cluster: image example.org/k8s/kube-proxy:v1.36.3_b.1"}, nil},
		"skipped": {"", with(func(_ *KubeadmState, d *desiredState) { d.SkipDNS, d.SkipProxy = true, true }), nil, []string{
			"kube-proxy is not upgraded: the KubeadmControlPlane has the annotation to skip it", "CoreDNS is not upgraded: the KubeadmControlPlane has the annotation to skip it"}},
		"not there": {"neither is created", with(func(f *KubeadmState, _ *desiredState) { f.Proxy, f.DNS = nil, nil }), nil,
			[]string{"kube-proxy is not upgraded: DaemonSet kube-proxy does not exist", "CoreDNS is not upgraded: Deployment coredns does not exist"}},
		"another DNS": {"", with(func(f *KubeadmState, _ *desiredState) { f.Proxy, f.Corefile = nil, nil }), nil,
			[]string{"kube-proxy is not upgraded: DaemonSet kube-proxy does not exist", "CoreDNS is not upgraded: ConfigMap coredns does not exist"}},
		"other containers": {"", with(func(f *KubeadmState, _ *desiredState) {
			f.Proxy.Spec.Template.Spec.Containers[1].Name, f.DNS.Spec.Template.Spec.Containers = "x", nil
		}), nil, []string{"kube-proxy is not upgraded: DaemonSet kube-proxy has no container kube-proxy", "CoreDNS is not upgraded: Deployment coredns has no container coredns"}},
		"no configuration": {"", with(func(f *KubeadmState, d *desiredState) { f.Proxy, d.Cluster = nil, bootstrapv1.ClusterConfiguration{} }), nil,
			[]string{"kube-proxy is not upgraded: DaemonSet kube-proxy does not exist", "CoreDNS is not upgraded: the KubeadmControlPlane has no clusterConfiguration"}},
		"digests": {"", setTo("a/kube-proxy@sha256:x", "coredns@sha256:y"), nil, []string{
			`kube-proxy is not upgraded: image "a/kube-proxy@sha256:x" is referred to by digest: its version is unknown`,
			`CoreDNS is not upgraded: image "coredns@sha256:y" is referred to by digest: its version is unknown`}},
		"no tags": {"", setTo("a:80/kube-proxy", "coredns:latest"), nil, []string{
			`kube-proxy is not upgraded: image "a:80/kube-proxy" has no tag: its version is unknown`, `CoreDNS is not upgraded: tag "latest" of CoreDNS is not a version`}},
		"garbage": {"what a tenant writes is named, and short", setTo("A B:x", strings.Repeat("x", 3000)+":1.0.0"), nil, []string{
			`kube-proxy is not upgraded: image "A B:x" is not a valid reference`, "CoreDNS is not upgraded: image \"" + strings.Repeat("x", 200) + `..." is not a valid reference`}},
		"older": {"", with(func(f *KubeadmState, d *desiredState) { f.Proxy, d.Cluster.DNS.ImageTag = nil, "v1.6.5" }), nil, []string{
			"CoreDNS is not upgraded: version v1.6.5 is older than v1.6.7, the running version: its Corefile cannot be migrated back",
			"kube-proxy is not upgraded: DaemonSet kube-proxy does not exist"}},
		"unknown": {"", with(func(f *KubeadmState, d *desiredState) { f.Proxy, d.Cluster.DNS.ImageTag = nil, "v1.99.0" }), nil, []string{
			`CoreDNS is not upgraded: the Corefile cannot be migrated from 1.6.7 to 1.99.0 ("` + "cannot migrate", "kube-proxy is not upgraded: DaemonSet kube-proxy does not exist"}},
		"no Corefile": {"", with(func(f *KubeadmState, d *desiredState) { f.Proxy, f.Corefile.Data = nil, nil }), nil, []string{
			"CoreDNS is not upgraded: ConfigMap coredns must have a key Corefile of at most 64 KiB", "kube-proxy is not upgraded: DaemonSet kube-proxy does not exist"}},
		"no Corefile that can be read": {"", with(func(f *KubeadmState, d *desiredState) {
			f.Proxy, f.Corefile.Data = nil, map[string]string{"Corefile": "{\nx y\n"}
		}), nil, []string{
			"CoreDNS is not upgraded: the Corefile in ConfigMap coredns cannot be read", "kube-proxy is not upgraded: DaemonSet kube-proxy does not exist"}},
		"no kubeadm-config": {"", with(func(f *KubeadmState, d *desiredState) {
			f.Proxy, f.Config = nil, nil
			d.Cluster.DNS.ImageTag = "v1.6.7-x.1"
		}), nil, []string{
			"CoreDNS is not upgraded: ConfigMap kubeadm-config of the workload cluster does not exist: restore it", "kube-proxy is not upgraded: DaemonSet kube-proxy does not exist"}},
		"vendor's tag": {"of the same release: the Corefile stays", with(func(f *KubeadmState, d *desiredState) {
			f.Proxy, f.DNSRole = nil, nil
			d.Cluster.DNS.ImageTag = "v1.6.7-x.1"
		}), []string{
			"change ConfigMap kubeadm-config of the workload cluster: image of CoreDNS", "change Deployment coredns of the workload cluster: image example.org/k8s/coredns:v1.6.7-x.1"}, nil},
		"mounted in another way": {"all at once", with(func(f *KubeadmState, d *desiredState) {
			f.Proxy, f.DNSRole, f.DNS.Spec.Template.Spec.Volumes = nil, nil, nil
		}), []string{
			"change ConfigMap coredns of the workload cluster: Corefile migrated from v1.6.7 to v1.8.0", "change ConfigMap kubeadm-config of the workload cluster: image of CoreDNS",
			"change Deployment coredns of the workload cluster: image example.org/k8s/coredns:v1.8.0"}, nil},
		"of its own repository": {"", with(func(f *KubeadmState, d *desiredState) {
			f.Proxy, f.DNSRole, d.Cluster.DNS = nil, nil, bootstrapv1.DNS{ImageRepository: "dns.example.org/", ImageTag: "v1.6.7"}
		}), []string{"change ConfigMap kubeadm-config of the workload cluster: image of CoreDNS", "change Deployment coredns of the workload cluster: image dns.example.org/coredns:v1.6.7"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f, d := found(t, left()...), desired("v1.36.3", "v1.8.0")
			tc.change(&f, &d)
			all := PlanUpgrades(f, d)
			var changes []string
			for _, c := range Changes(all) {
				changes = append(changes, c.String())
			}
			if tc.changes != nil {
				if diff := cmp.Diff(tc.changes, changes); diff != "" {
					t.Errorf("%s: changes (-want +got):\n%s", tc.reason, diff)
				}
				return
			}
			got := append(problems(all), states(all)...)
			if len(changes) > 0 || len(got) != len(tc.says) {
				t.Fatalf("%s: %v, %v", tc.reason, changes, got)
			}
			for i, want := range tc.says {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("%s: got %q, want %q", tc.reason, got[i], want)
				}
			}
		})
	}
	if all := PlanUpgrades(KubeadmState{Problem: "not connected"}, desiredState{}); len(all) > 0 {
		t.Errorf("unread: %v", all)
	}
}

// A migration that was given up goes back: the backup is the Corefile again.
func TestCoreDNSGivenUp(t *testing.T) { // KC-23
	f := found(t, left()...)
	*volumeKey(f.DNS) = "Corefile-backup"
	f.Corefile.Data = map[string]string{"Corefile": "migrated", "Corefile-backup": oldCorefile}
	var got []string
	for _, c := range planDNSUpgrade(f, desired("v1.36.3", "v1.6.7")).Changes {
		if config, is := c.after.(*corev1.ConfigMap); is {
			got = append(got, config.Data["Corefile"])
		}
		if d, is := c.after.(*appsv1.Deployment); is {
			got = append(got, *volumeKey(d), imageOf(d.Spec.Template.Spec, dnsName))
		}
	}
	if diff := cmp.Diff([]string{oldCorefile, "Corefile", "example.org/k8s/coredns:v1.6.7"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInRepository(t *testing.T) { // KC-23
	for _, tc := range []struct{ image, repository, want string }{
		{"example.org/coredns:v1.8.0", "", "example.org/coredns:v1.8.0"},
		{"example.org/coredns:v1.8.0", "mirror.example.org/a/", "mirror.example.org/a/coredns:v1.8.0"},
		{"example.org/coredns/coredns:v1.8.0", "example.org", "example.org/coredns/coredns:v1.8.0"},
		{"example.org/coredns/coredns:v1.8.0", "mirror.example.org", "mirror.example.org/coredns:v1.8.0"},
		{"example.org/coredns:v1.8.0", "r" + projectDomain, "r" + projectDomain + "/coredns/coredns:v1.8.0"},
		{"coredns:v1.8.0", "", "coredns:v1.8.0"},
	} {
		i, err := parseImage(tc.image)
		if got := i.inRepository(tc.repository).String(); got != tc.want || err != nil {
			t.Errorf("%s in %q: %s, %v; want %s", tc.image, tc.repository, got, err, tc.want)
		}
	}
}

func TestDesiredBy(t *testing.T) { // KC-22, KC-23
	plane := &controlplanev1.KubeadmControlPlane{}
	plane.Spec.Version = "v1.36.3"
	plane.Annotations = map[string]string{controlplanev1.SkipCoreDNSAnnotation: ""}
	if d := DesiredBy(plane); d.Version != "v1.36.3" || !d.SkipDNS || d.SkipProxy {
		t.Errorf("%+v", d)
	}
	plane.Annotations = map[string]string{controlplanev1.SkipKubeProxyAnnotation: "x"}
	if d := DesiredBy(plane); d.SkipDNS || !d.SkipProxy {
		t.Errorf("%+v", d)
	}
}

// What an API server answers is said in a word, and nothing of it is repeated.
func TestReadFails(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"refuses": {apierrors.NewForbidden(appsv1.Resource("daemonsets"), "kube-proxy", errors.New("<script>")), "DaemonSet kube-proxy of the workload cluster cannot be read: it responds with status 403"},
		"hangs":   {fmt.Errorf("get: %w", context.DeadlineExceeded), "DaemonSet kube-proxy of the workload cluster cannot be read: it does not respond"},
	} {
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*appsv1.DaemonSet); is {
				return tc.err
			}
			return c.Get(ctx, key, o, opts...)
		}}).Build()
		if _, err := Read(t.Context(), c, time.Unix(1, 0)); fault.As(err) == nil || ErrorText(err) != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
