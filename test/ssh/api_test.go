package ssh

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// api reads the API of the cluster on the test hosts.
type api struct {
	context.Context
	client kubernetes.Interface
}

func apiClient(t *testing.T, m host) api {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(run(t, "docker", "exec", m.name, "cat", "/etc/kubernetes/admin.conf")))
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return api{Context: t.Context(), client: c}
}

// ready reports whether a Node is Ready.
func (a api) ready(name string) error {
	node, err := a.client.CoreV1().Nodes().Get(a, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return errors.New(c.Message)
		}
	}
	if node.Spec.ProviderID == "" {
		return fmt.Errorf("Node %s has no provider ID", name)
	}
	return nil
}

// dnsReady reports whether the Pods of CoreDNS are Ready, which shows that containers run and reach the API.
func (a api) dnsReady() error {
	pods, err := a.client.CoreV1().Pods("kube-system").List(a, metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
	if err != nil {
		return err
	}
	for _, p := range pods.Items {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
	}
	return errors.New("no Pod of CoreDNS is Ready")
}
