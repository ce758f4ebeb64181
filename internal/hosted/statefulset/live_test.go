package statefulset

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

const plane = "team-a.demo"

// home is a namespace of a management cluster with the manager's Pod, and the backend over it. No controller creates Pods there.
type home struct {
	*testing.T
	api       client.Client
	server    *apiserver.Server
	namespace string
	planes    *controlPlanes
	changed   chan string
}

func newHome(t *testing.T) *home {
	t.Helper()
	server := apiserver.Start(t, apiserver.Options{})
	h := &home{T: t, api: server.Client(t, scheme.Scheme), server: server, namespace: "home"}
	h.must(h.api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))
	h.must(h.api.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "m"}}))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "manager-0"},
		Spec: corev1.PodSpec{
			ServiceAccountName: "m", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
			Tolerations: []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}},
			Containers:  []corev1.Container{{Name: managerContainer, Image: "slipway:v1"}},
		},
	}
	h.must(h.api.Create(t.Context(), pod))
	pod.Status.HostIP, pod.Status.HostIPs = "203.0.113.7", []corev1.HostIP{{IP: "203.0.113.7"}}
	h.must(h.api.Status().Update(t.Context(), pod))
	h.restart()
	return h
}

// restart is another manager with the same Pod's name.
func (h *home) restart(changes ...func(*Settings)) {
	h.Helper()
	s := Settings{Namespace: h.namespace, Pod: "manager-0", Version: "v1.36.3", Service: Service{Type: corev1.ServiceTypeNodePort}, Volume: Volume{Size: resource.MustParse("1Gi")}}
	for _, change := range changes {
		change(&s)
	}
	connection, err := Connect(h.server.Config, logr.Discard(), h.namespace)
	h.must(err)
	b, err := New(h.Context(), connection, s)
	h.must(err)
	ctx, stop := context.WithCancel(h.Context())
	ended := make(chan error, 1)
	go func() { ended <- connection.Start(ctx) }()
	h.Cleanup(func() { stop(); <-ended })
	if !connection.GetCache().WaitForCacheSync(ctx) {
		h.Fatal("no cache")
	}
	h.planes = b.ControlPlanes.(*controlPlanes)
	changed := make(chan string, 1000)
	h.changed = changed // of this manager alone: the one before still tells its own
	h.Cleanup(h.planes.Subscribe(func(name string) { changed <- name }))
}

func (h *home) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// until waits for an event after which the control plane is as it should be.
func (h *home) until(what string, is func(backend.ControlPlane) bool) backend.ControlPlane {
	h.Helper()
	timeout := time.After(time.Minute)
	for {
		got, err := h.planes.Status(h.Context(), plane)
		h.must(err)
		if is(got) {
			return got
		}
		select {
		case <-h.changed:
		case <-timeout:
			h.Fatalf("%s: %+v", what, got)
		}
	}
}

// files are the authorities of a control plane.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for purpose, name := range map[secrets.Purpose]string{secrets.CA: processconfig.CA, secrets.Etcd: processconfig.EtcdCA, secrets.Proxy: processconfig.ProxyCA, secrets.SA: processconfig.SigningSA} {
		data, err := secrets.Generate(purpose, secrets.KeyOptions{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		extension := ".crt"
		if purpose == secrets.SA {
			extension = ".pub"
		}
		out[name+extension], out[name+".key"] = data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]
	}
	return out
}

// start reserves the endpoint and starts the control plane, as the controller does.
func (h *home) start(files map[string][]byte) processconfig.Config {
	h.Helper()
	at, err := h.planes.Reserve(h.Context(), plane, clusterv1.APIEndpoint{})
	h.must(err)
	c := config()
	c.Endpoint = net.JoinHostPort(at.Host, strconv.Itoa(int(at.Port)))
	h.must(h.planes.Start(h.Context(), plane, c, files))
	return c
}

func (h *home) key() client.ObjectKey {
	return client.ObjectKey{Namespace: h.namespace, Name: objectName(plane)}
}

// runs does what the StatefulSet controller and the kubelet would do. The Pod is of the StatefulSet as it is now.
func (h *home) runs() {
	h.Helper()
	set := &appsv1.StatefulSet{}
	h.must(h.api.Get(h.Context(), h.key(), set))
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: set.Spec.Template.Spec}
	pod.Namespace, pod.Name, pod.Spec.ServiceAccountName = h.namespace, set.Name+"-0", "m"
	h.must(client.IgnoreNotFound(h.api.Delete(h.Context(), pod.DeepCopy(), client.GracePeriodSeconds(0))))
	h.must(h.api.Create(h.Context(), pod))
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
	h.must(h.api.Status().Update(h.Context(), pod))
	h.until("it runs", func(p backend.ControlPlane) bool { return p.Ready })
}

// remember writes down that it has data, as the controller does where something is pending.
func (h *home) remember(c processconfig.Config, files map[string][]byte) {
	h.Helper()
	h.until("something to remember", func(p backend.ControlPlane) bool { return strings.HasPrefix(p.Pending, "record that") })
	h.must(h.planes.Start(h.Context(), plane, c, files))
	h.until("it is remembered", func(p backend.ControlPlane) bool { return p.Pending == "" && p.Data.Version == "v1.36.3" })
}

// all are the objects of the control plane that exist.
func (h *home) all() []string {
	h.Helper()
	var out []string
	for _, o := range []client.Object{&appsv1.StatefulSet{}, &networkingv1.NetworkPolicy{}, &corev1.PersistentVolumeClaim{}, &corev1.Secret{}, &corev1.Service{}} {
		if err := h.api.Get(h.Context(), h.key(), o); err == nil && o.GetDeletionTimestamp().IsZero() {
			out = append(out, typeName(o))
		}
	}
	return out
}

func typeName(o client.Object) string {
	switch o.(type) {
	case *appsv1.StatefulSet:
		return "StatefulSet"
	case *networkingv1.NetworkPolicy:
		return "NetworkPolicy"
	case *corev1.PersistentVolumeClaim:
		return "PersistentVolumeClaim"
	case *corev1.Secret:
		return "Secret"
	}
	return "Service"
}

// A control plane from its first start to its end, with what controllers and kubelets do put in by hand; its process is a real one, with
// what the Secret has.
func TestLife(t *testing.T) {
	h := newHome(t)
	content := files(t)
	c := h.start(content)
	if first, err := h.planes.Status(t.Context(), plane); err != nil || first.Config != c.Hash() {
		t.Errorf("it would be started again: %+v, %v", first, err)
	}
	first := h.until("it exists", func(p backend.ControlPlane) bool { return p.Exists && p.Reserved })
	if first.Endpoint.Host != "203.0.113.7" || first.Endpoint.Port == 0 || first.Running {
		t.Errorf("%+v", first)
	}
	set := &appsv1.StatefulSet{}
	h.must(h.api.Get(t.Context(), h.key(), set))
	if pod := set.Spec.Template.Spec; pod.Containers[0].Image != "slipway:v1" || pod.Containers[0].Ports[0].ContainerPort != first.Endpoint.Port ||
		pod.ImagePullSecrets[0].Name != "registry" || len(pod.Tolerations) != 1 || len(set.Spec.VolumeClaimTemplates) != 0 {
		t.Errorf("%+v", pod)
	}
	h.runs()
	h.remember(c, content)
	again, err := h.planes.Reserve(t.Context(), plane, first.Endpoint)
	h.must(err)
	if again != first.Endpoint {
		t.Errorf("%v is reserved, then %v", first.Endpoint, again)
	}
	h.processRuns(c, content)

	h.must(h.api.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: objectName(plane)}}))
	if again, err = h.planes.Reserve(t.Context(), plane, first.Endpoint); err != nil || again != first.Endpoint {
		t.Errorf("a Service that was deleted: %v, %v; it was %v", again, err, first.Endpoint)
	}
	h.until("it counts for its namespace", func(backend.ControlPlane) bool {
		own, all, err := h.planes.Count(t.Context(), "team-a")
		h.must(err)
		other, _, err := h.planes.Count(t.Context(), "team")
		h.must(err)
		return own == 1 && all == 1 && other == 0
	})

	c.APIServer = []string{"--v=2"}
	h.must(h.planes.Start(t.Context(), plane, c, content))
	h.until("the Pod of the old configuration is not ready", func(p backend.ControlPlane) bool {
		return p.Config == c.Hash() && p.Running && !p.Ready && p.Problem != ""
	})
	h.runs()

	h.must(h.planes.Remove(t.Context(), plane))
	h.must(h.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: objectName(plane) + "-0"}}, client.GracePeriodSeconds(0)))
	claim := &corev1.PersistentVolumeClaim{} // no controller removes the finalizer that protects it
	if err := h.api.Get(t.Context(), h.key(), claim); err == nil {
		claim.Finalizers = nil
		h.must(client.IgnoreNotFound(h.api.Update(t.Context(), claim)))
	}
	h.until("it is gone", func(p backend.ControlPlane) bool { return !p.Exists && !p.Reserved })
	if left := h.all(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// processRuns starts the process as the Pod would, with what the Secret has, and with an empty volume, which it refuses.
func (h *home) processRuns(c processconfig.Config, content map[string][]byte) {
	h.Helper()
	binary, err := apiserver.Binary()
	h.must(err)
	root, err := os.MkdirTemp("", "slipway-") // short enough for sockets
	h.must(err)
	h.Cleanup(func() { _ = os.RemoveAll(root) })
	secret := &corev1.Secret{}
	h.must(h.api.Get(h.Context(), h.key(), secret))
	delivery := filepath.Join(root, "delivery")
	h.must(os.MkdirAll(delivery, 0o700))
	deliver := func(leftOut string) {
		for name, text := range secret.Data {
			if name != leftOut {
				h.must(os.WriteFile(filepath.Join(delivery, name), text, 0o600))
			}
		}
	}
	deliver(processconfig.DeliveredRecord) // the first start
	folder := filepath.Join(root, "data")
	h.must(os.MkdirAll(folder, 0o700))
	run := func(folder string) *exec.Cmd {
		cmd := exec.Command(binary, "control-plane", "run", "--delivery", delivery, "--config", filepath.Join(folder, "config.json"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return cmd
	}
	address, err := netip.ParseAddrPort(c.Endpoint)
	h.must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(content[processconfig.CA+".crt"])
	https := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "kubernetes", MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	for range 2 { // the second one has the data of the first
		cmd := run(folder)
		var log strings.Builder
		cmd.Stderr = &log
		h.must(cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		err := wait.PollUntilContextTimeout(h.Context(), 200*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
			select {
			case err := <-ended:
				return false, errors.Join(errors.New("it ended"), err)
			default:
			}
			answer, err := https.Get("https://127.0.0.1:" + strconv.Itoa(int(address.Port())) + "/readyz")
			if err != nil {
				return false, nil
			}
			defer answer.Body.Close() //nolint:errcheck // it is only read
			return answer.StatusCode == http.StatusOK, nil
		})
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err != nil {
			<-ended
			h.Fatalf("%v\n%s", err, log.String())
		}
		if err := <-ended; err != nil {
			h.Errorf("it was stopped: %v\n%s", err, log.String())
		}
		deliver("")
	}
	empty := filepath.Join(root, "empty")
	h.must(os.MkdirAll(empty, 0o700))
	if out, err := run(empty).CombinedOutput(); err == nil || !strings.Contains(string(out), "does not start it without data") {
		h.Errorf("an empty volume: %v\n%s", err, out)
	}
}

// A control plane whose claim is gone is not started, and no claim is created for it.
func TestClaimGone(t *testing.T) {
	h := newHome(t)
	content := files(t)
	c := h.start(content)
	h.runs()
	h.remember(c, content)
	claim := &corev1.PersistentVolumeClaim{}
	h.must(h.api.Get(t.Context(), h.key(), claim))
	claim.Finalizers = nil
	h.must(h.api.Update(t.Context(), claim))
	h.must(h.api.Delete(t.Context(), claim))
	h.must(h.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: objectName(plane) + "-0"}}, client.GracePeriodSeconds(0)))
	h.until("it is said", func(p backend.ControlPlane) bool {
		return !p.Data.Exists && strings.Contains(p.Problem, "does not start it without data")
	})
	c.APIServer = []string{"--v=2"}
	if err := h.planes.Start(t.Context(), plane, c, content); reasonOf(err) != processconfig.ReasonDataMissing {
		t.Errorf("started: %v", err)
	}
	if err := h.api.Get(t.Context(), h.key(), claim); !apierrors.IsNotFound(err) {
		t.Errorf("a claim was created: %v", err)
	}
	restored := desiredPlane{name: plane, namespace: h.namespace}.claim(Volume{Size: resource.MustParse("1Gi")})
	h.must(h.api.Create(t.Context(), restored))
	h.until("a person restored it", func(p backend.ControlPlane) bool { return p.Data.Exists })
	h.must(h.planes.Start(t.Context(), plane, c, content))
}

// Whatever write a manager is killed after, the next one's start completes what is missing.
func TestKilledBetweenWrites(t *testing.T) {
	h := newHome(t)
	content := files(t)
	c := h.start(content)
	want := h.all()
	for i, kind := range want {
		for _, o := range []client.Object{&appsv1.StatefulSet{}, &networkingv1.NetworkPolicy{}, &corev1.PersistentVolumeClaim{}, &corev1.Secret{}} {
			if i == len(want)-1 || typeName(o) != kind { // the Service is reserved before
				continue
			}
			h.must(h.api.Get(t.Context(), h.key(), o))
			o.SetFinalizers(nil)
			h.must(h.api.Update(t.Context(), o))
			h.must(h.api.Delete(t.Context(), o))
		}
		h.must(h.planes.Start(t.Context(), plane, c, content))
		if diff := cmp.Diff(want, h.all()); diff != "" {
			t.Errorf("without %s: %s", kind, diff)
		}
	}
}

// After an upgrade of the manager a control plane restarts with its image, once nothing else has to.
func TestAnotherImage(t *testing.T) {
	h := newHome(t)
	content := files(t)
	c := h.start(content)
	h.runs()
	h.remember(c, content)
	manager := &corev1.Pod{}
	h.must(h.api.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: "manager-0"}, manager))
	manager.Spec.Containers[0].Image = "slipway:v2"
	h.must(h.api.Update(t.Context(), manager))
	h.until("the manager that runs has the image of its start", func(p backend.ControlPlane) bool { return p.Ready && p.Pending == "" })
	h.restart()
	h.until("it is to restart", func(p backend.ControlPlane) bool {
		return p.Pending == "restart the control plane with image slipway:v2, from slipway:v1" && p.Config == c.Hash()
	})
	h.must(h.planes.Start(t.Context(), plane, c, content))
	set := &appsv1.StatefulSet{}
	h.must(h.api.Get(t.Context(), h.key(), set))
	if image := imageOf(set); image != "slipway:v2" {
		t.Errorf("image %s", image)
	}
	h.until("once", func(p backend.ControlPlane) bool { return p.Pending == "" })
}
