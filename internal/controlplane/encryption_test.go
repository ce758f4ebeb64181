package controlplane

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/secretencryption"
)

// storedSecret is a Secret as it is in etcd.
func storedSecret(t *testing.T, dir datadir.Dir) []byte {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + dir.Path("etcd", "client.sock")}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	r, err := c.Get(t.Context(), "/registry/secrets/default/s")
	if err != nil || len(r.Kvs) != 1 {
		t.Fatalf("%v, %d entries", err, r.Count)
	}
	return r.Kvs[0].Value
}

// The Secrets of a management cluster that has some are encrypted with its next start, with another key once that is put in front,
// and plain text again where the operator wants that; they can be read all the while.
func TestEncryptionAtRest(t *testing.T) {
	dir := datadir.Dir(t.TempDir())
	files := secretencryption.Files{Dir: dir}
	until := func(c kubernetes.Interface, reason, prefix string) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
			s, err := c.CoreV1().Secrets("default").Get(ctx, "s", metav1.GetOptions{})
			if err != nil || string(s.Data["k"]) != "treasure" {
				t.Fatalf("%s: it cannot be read: %v", reason, err)
			}
			status, err := files.Status()
			return bytes.HasPrefix(storedSecret(t, dir), []byte(prefix)) && status.Others == 0, err
		})
		if err != nil {
			t.Fatalf("%s: %v, stored is %.40q", reason, err, storedSecret(t, dir))
		}
	}
	run(t, ManagementConfig{Dir: dir}, func(c kubernetes.Interface) {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"k": []byte("treasure")}}
		if _, err := c.CoreV1().Secrets("default").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(storedSecret(t, dir), []byte("treasure")) {
			t.Fatal("the test looks in the wrong place")
		}
	})
	run(t, ManagementConfig{Dir: dir, EncryptSecrets: true, Audit: &hostedv1.Audit{}}, func(c kubernetes.Interface) {
		first, err := files.Status()
		if err != nil {
			t.Fatal(err)
		}
		until(c, "first start with encryption", "k8s:enc:secretbox:v1:"+first.Key+":")
		next, err := files.Rotate(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		until(c, "a new key while it runs", "k8s:enc:secretbox:v1:"+next+":")
		text, err := os.ReadFile(dir.Path("pki", "encryption.json"))
		if err != nil || strings.Contains(string(text), first.Key) || !strings.Contains(string(text), next) {
			t.Errorf("%v: the old key is not forgotten", err)
		}
	})
	run(t, ManagementConfig{Dir: dir}, func(c kubernetes.Interface) { until(c, "switched off", "k8s\x00") })
	log, err := os.ReadFile(dir.AuditLog())
	if err != nil || !strings.Contains(string(log), `"resource":"secrets"`) || strings.Contains(string(log), "treasure") {
		t.Errorf("%v: the audit log has %d bytes, and does not say who wrote Secrets, or what", err, len(log))
	}
}
