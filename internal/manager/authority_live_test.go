package manager_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// TestChangedAuthority: a control plane that has settled follows the authority that is put into its Secret, and nothing else is needed
// for that.
func TestChangedAuthority(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	c := newClient(t, server)
	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}))
	startProcess(t, server)
	createFleet(t, c, "ns")
	eventually(t, "the cluster and its members are Available", func() error {
		all := 0
		for _, o := range sweep(t, c, "ns") {
			if !slices.Contains([]string{"Machine", "MachineDeployment", "HostedControlPlane", "Cluster"}, o.GetKind()) {
				continue
			}
			if all++; !isTrue(o, "Available") {
				return fmt.Errorf("%s %s: %v", o.GetKind(), o.GetName(), o.Object["status"])
			}
		}
		if all < 4 {
			return fmt.Errorf("there are only %d objects", all)
		}
		return nil
	})
	ca := &corev1.Secret{}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "fleet-ca"}, ca))
	another, err := pki.NewAuthority(pki.Authority{Name: "kubernetes"}, time.Now())
	must(t, err)
	bundle := slices.Concat(ca.Data[corev1.TLSCertKey], another.CertPEM)
	before := ca.DeepCopy()
	ca.Data[corev1.TLSCertKey] = bundle
	must(t, c.Patch(t.Context(), ca, client.MergeFrom(before)))
	eventually(t, "the kubeconfig trusts both, and the API server answers its client", func() error {
		secret := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "fleet-kubeconfig"}, secret); err != nil {
			return err
		}
		if got := secrets.ParseKubeconfig(secret); !bytes.Equal(got.CA, bundle) {
			return fmt.Errorf("it trusts %s", got.CA)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
		if err != nil {
			return err
		}
		workload, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		nodes, err := workload.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err == nil && len(nodes.Items) == 0 {
			err = errors.New("the cluster has lost its nodes")
		}
		return err
	})
}
