package snapshots

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Why the etcd of a control plane on Machines is not reached is said: it is external, or the Secret that signs for it is missing.
func TestOpenMachines(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "c"}}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubeadmControlPlane", Name: "c"}
	secret := func(name string, keys ...string) client.Object {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name}, Data: map[string][]byte{}}
		for _, key := range keys {
			s.Data[key] = []byte("x")
		}
		return s
	}
	for name, tc := range map[string]struct {
		secrets []client.Object
		want    string
	}{
		"external": {[]client.Object{secret("c-etcd", "tls.crt"), secret("c-apiserver-etcd-client", "tls.crt", "tls.key")},
			"The etcd of the cluster is external (Secret c-apiserver-etcd-client): take its snapshots where it runs"},
		"external, with the key of its authority": {[]client.Object{secret("c-etcd", "tls.crt", "tls.key"), secret("c-apiserver-etcd-client", "tls.crt", "tls.key")},
			"The etcd of the cluster is external (Secret c-apiserver-etcd-client): take its snapshots where it runs"},
		"gone": {nil, "Secret c-etcd is missing, and etcd cannot be reached without it; condition CertificatesAvailable of the control plane has the remedy"},
		"without a key": {[]client.Object{secret("c-etcd", "tls.crt")},
			"Secret c-etcd has no private key to sign an etcd client certificate: add it as tls.key"},
	} {
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tc.secrets, cluster)...).Build()
		_, err := EtcdConnector{Client: c, Now: time.Now}.Open(t.Context(), client.ObjectKeyFromObject(cluster))
		if f := fault.As(err); f == nil || f.Message != tc.want || f.Kind != fault.Invalid {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}
