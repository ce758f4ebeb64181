package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// steadyClient writes one ConfigMap after the other to a workload cluster, and reads each of them, from when it is started until the end
// of the test.
type steadyClient struct {
	api kubernetes.Interface

	mu           sync.Mutex
	acknowledged []string
	failures     int
	lastFailure  error
	lastSuccess  time.Time
	longestGap   time.Duration
	unread       []string
}

const steadyLabel = "steady"

// startClient starts a client. It uses one connection at a time, as most clients do.
func (w workload) startClient(t *testing.T) *steadyClient {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout, config.QPS = 5*time.Second, -1
	c := &steadyClient{api: kubernetes.NewForConfigOrDie(config), lastSuccess: time.Now()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				c.write(ctx, fmt.Sprintf("steady-%06d", n))
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return c
}

// write writes one object and reads it. What cannot be written is not written again: the next has another name.
func (c *steadyClient) write(ctx context.Context, name string) {
	maps := c.api.CoreV1().ConfigMaps("default")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{steadyLabel: ""}}, Data: map[string]string{"name": name}}
	_, err := maps.Create(ctx, object, metav1.CreateOptions{})
	acknowledged := err == nil
	var read *corev1.ConfigMap
	if acknowledged {
		read, err = maps.Get(ctx, name, metav1.GetOptions{})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if acknowledged {
		c.acknowledged = append(c.acknowledged, name)
	}
	switch {
	case err != nil:
		c.failures++
		c.lastFailure = err
		return
	case read.Data["name"] != name:
		c.unread = append(c.unread, name)
	}
	now := time.Now()
	c.longestGap = max(c.longestGap, now.Sub(c.lastSuccess))
	c.lastSuccess = now
}

// goesOn waits for writes that begin now, and tells how it went so far.
func (c *steadyClient) goesOn(t *testing.T) {
	t.Helper()
	count := func() (int, error) { c.mu.Lock(); defer c.mu.Unlock(); return len(c.acknowledged), c.lastFailure }
	before, _ := count()
	eventually(t, short, "writes", func() error {
		if n, last := count(); n < before+20 {
			return fmt.Errorf("%d more writes were acknowledged; the last failure: %w", n-before, last)
		}
		return nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Logf("the client: %d writes acknowledged, %d requests failed (the last: %v), at most %v without an answer",
		len(c.acknowledged), c.failures, c.lastFailure, c.longestGap.Round(time.Millisecond))
	if c.longestGap > time.Minute {
		t.Errorf("%v without an answer", c.longestGap)
	}
}

// lostNothing sees that everything that was acknowledged is there.
func (c *steadyClient) lostNothing(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	acknowledged, unread := append([]string{}, c.acknowledged...), c.unread
	c.mu.Unlock()
	var list *corev1.ConfigMapList
	eventually(t, short, "all that was written", func() (err error) {
		list, err = c.api.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{LabelSelector: steadyLabel})
		return err
	})
	there := map[string]string{}
	for _, o := range list.Items {
		there[o.Name] = o.Data["name"]
	}
	for _, name := range acknowledged {
		if there[name] != name {
			t.Errorf("write %s was acknowledged and is lost: %q", name, there[name])
		}
	}
	if len(unread) > 0 {
		t.Errorf("reads of what was acknowledged had another content: %v", unread)
	}
	t.Logf("%d writes were acknowledged, all are there", len(acknowledged))
}
