package manager_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/progress"
	"github.com/slipwayhq/slipway/internal/operate/rotate"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// TestRotation: the authority of a simulated cluster is replaced, with the controllers of this program; the verb's library is killed after each
// thing that it does, and the manager in the middle.
func TestRotation(t *testing.T) { // CP-15
	server := apiserver.Start(t, apiserver.Options{})
	c := newClient(t, server)
	p := startProcess(t, server)
	createFleet(t, c, "default")
	createFile(t, c, "default", filepath.Join("testdata", "rotation.yaml"))
	key := client.ObjectKey{Namespace: "default", Name: "fleet"}
	order := rotate.Rotator{Operation: progress.Operation{Client: c, Now: time.Now, Interval: 50 * time.Millisecond}}
	of := &clusterv1.Cluster{}
	eventually(t, "nothing keeps the rotation from beginning", func() error {
		var err error
		if of, err = describe.GetCluster(t.Context(), c, key); err != nil {
			return err
		}
		plan, err := order.Prepare(t.Context(), of)
		if err == nil && (plan.Problem != "" || len(machinesOf(t, c, "fleet")) != 2) {
			err = errors.New(plan.Problem)
		}
		return err
	})
	old, before := kubeconfigOf(t, c, key), machinesOf(t, c, "fleet")
	must(t, answers(t, old))
	ca := authorityOf(t, c, key)

	kills := 0
	for done := false; !done; kills++ {
		plan, err := order.Prepare(t.Context(), of)
		must(t, err)
		if kills > 0 && plan.Phase == "None" {
			break // killed after the last write
		}
		if kills > 30 || plan.Problem != "" {
			t.Fatalf("after %d kills: %+v", kills, plan)
		}
		ctx, kill := context.WithCancel(t.Context())
		order.Progress = func(text string) {
			t.Log(text)
			if strings.HasPrefix(text, "The ") || strings.HasSuffix(text, " replaces its Machines") || strings.HasSuffix(text, " is replaced") {
				kill() // it has done something; the other texts say what it waits for
			}
		}
		err = order.Run(ctx, "default", plan)
		kill()
		if done = err == nil; !done && !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", plan.Phase, err)
		}
		if kills == 3 {
			p.kill()
			p = startProcess(t, server)
		}
	}
	if kills < 7 {
		t.Errorf("it was killed only %d times", kills)
	}
	after := authorityOf(t, c, key)
	if len(after.Data) != 2 || secrets.Fingerprint(after) == secrets.Fingerprint(ca) || strings.Count(string(after.Data[corev1.TLSCertKey]), "BEGIN") != 1 {
		t.Errorf("the Secret has %d keys and %s", len(after.Data), after.Data[corev1.TLSCertKey])
	}
	for _, name := range machinesOf(t, c, "fleet") {
		if slices.Contains(before, name) {
			t.Errorf("Machine %s was not replaced", name)
		}
	}
	if err := answers(t, old); err == nil {
		t.Error("the old kubeconfig still works")
	}
	eventually(t, "the new kubeconfig works", func() error { return answers(t, kubeconfigOf(t, c, key)) })
	untilAvailable(t, c, "default", "fleet")
	t.Run("refused", func(t *testing.T) { rotationRefused(t, c, key) })
}

// rotationRefused: nothing is changed where a node would not be replaced, or the authority is not one of this program.
func rotationRefused(t *testing.T, c client.Client, key client.ObjectKey) {
	order := rotate.Rotator{Operation: progress.Operation{Client: c, Now: time.Now, Interval: 50 * time.Millisecond}}
	of, err := describe.GetCluster(t.Context(), c, key)
	must(t, err)
	md := &clusterv1.MachineDeployment{}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: "fleet-workers"}, md))
	old := md.DeepCopy()
	md.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	must(t, c.Patch(t.Context(), md, client.MergeFrom(old)))
	was := authorityOf(t, c, key)
	eventually(t, "OnDelete is named", func() error { // and before that, that its spec is not observed
		plan, err := order.Prepare(t.Context(), of)
		must(t, err)
		if !strings.Contains(plan.Problem, "MachineDeployment fleet-workers replaces only Machines that are deleted (OnDelete)") {
			return errors.New(plan.Problem)
		}
		if err := order.Run(t.Context(), key.Namespace, plan); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%v", err)
		}
		return nil
	})
	if is := authorityOf(t, c, key); is.ResourceVersion != was.ResourceVersion {
		t.Error("the Secret was changed")
	}
}

func authorityOf(t *testing.T, c client.Client, key client.ObjectKey) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: secrets.CA.SecretName(key.Name)}, s))
	return s
}

func kubeconfigOf(t *testing.T, c client.Client, key client.ObjectKey) []byte {
	t.Helper()
	s := &corev1.Secret{}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: secrets.Admin.SecretName(key.Name)}, s))
	return s.Data["value"]
}

// answers reports why the API of a workload cluster does not answer who has the kubeconfig.
func answers(t *testing.T, kubeconfig []byte) error {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	must(t, err)
	workload, err := kubernetes.NewForConfig(config)
	must(t, err)
	nodes, err := workload.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err == nil && len(nodes.Items) != 2 {
		err = fmt.Errorf("there are %d nodes", len(nodes.Items))
	}
	return err
}
