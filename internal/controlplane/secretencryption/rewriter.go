package secretencryption

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

const (
	// checkInterval is the interval between checks of the key file and of the stored Secrets.
	checkInterval = 2 * time.Second
	// pageSize is the number of Secrets in one request.
	pageSize = 100
	// secretsPrefix is the etcd prefix of Secrets.
	secretsPrefix = "/registry/secrets/"
	// probeName is a Secret in kube-system that reveals which key the API server uses.
	probeName = "slipway-encryption-probe"
	// encrypted prefixes data that a key encrypted. The name of the key and a colon follow.
	encrypted = "k8s:enc:secretbox:v1:"
)

// Rewriter rewrites the stored Secrets of the management cluster according to the key file: with the first key, or as
// plain text. Package controlplane runs it while the management cluster runs, unless Secrets never were encrypted.
type Rewriter struct {
	Files
	// Plain means that Secrets are stored as plain text.
	Plain bool
	// Etcd is the endpoint of the database, and Root a client configuration with full access.
	Etcd string
	Root *rest.Config
}

// Run runs until ctx ends. Errors are logged and retried, because the API server can read all stored data in
// the meantime. Package controlplane runs it beside the API server.
func (k Rewriter) Run(ctx context.Context) error {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	var done []encryptionKey
	for {
		if keys, err := k.step(ctx, done); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "encrypting the stored Secrets with the first key failed")
		} else if keys != nil {
			done = keys
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// step returns the keys if all stored Secrets use the first one, and nil if this is not the case yet. The
// argument done contains the keys of the last complete step.
func (k Rewriter) step(ctx context.Context, done []encryptionKey) ([]encryptionKey, error) {
	keys, err := k.readKeys()
	if err != nil || len(keys) == 0 || slices.EqualFunc(keys, done, equalKeys) {
		return nil, err
	}
	if err := k.locked(func() error { // the new key may be used from now on
		if err := k.recordNeededKeys(keys); err != nil {
			return err
		}
		return k.writeConfig(keys, k.Plain)
	}); err != nil {
		return nil, err
	}
	if follows, err := k.probe(ctx, keys[0]); err != nil || !follows { // the API server has not reloaded its file yet
		return nil, err
	}
	all, err := k.stored(ctx, keys[0])
	if err == nil && !all {
		if err = k.rewrite(ctx); err == nil {
			all, err = k.stored(ctx, keys[0])
		}
	}
	if err != nil || !all {
		return nil, err
	}
	return keys[:1], k.removeOldKeys(keys)
}

// probe reports whether the API server writes with the key. It writes a Secret and reads it in etcd.
func (k Rewriter) probe(ctx context.Context, key encryptionKey) (bool, error) {
	c, err := kubernetes.NewForConfig(k.Root)
	if err != nil {
		return false, err
	}
	secrets := c.CoreV1().Secrets(metav1.NamespaceSystem)
	s, err := secrets.Get(ctx, probeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: probeName}}, metav1.CreateOptions{})
	} else if err == nil {
		_, err = secrets.Update(ctx, s, metav1.UpdateOptions{})
	}
	if err != nil {
		return false, fmt.Errorf("write Secret %s/%s: %w", metav1.NamespaceSystem, probeName, err)
	}
	return k.allEncryptedWith(ctx, secretsPrefix+metav1.NamespaceSystem+"/"+probeName, key)
}

func equalKeys(a, b encryptionKey) bool { return a.Name == b.Name && bytes.Equal(a.Secret, b.Secret) }

// removeOldKeys removes all keys but the first, unless a new one was added in the meantime.
func (k Rewriter) removeOldKeys(keys []encryptionKey) error {
	return k.locked(func() error {
		now, err := k.readKeys()
		if err != nil || !slices.EqualFunc(now, keys, equalKeys) {
			return err
		}
		if len(keys) > 1 {
			klog.InfoS("removed the other encryption keys, because all stored Secrets are encrypted with the first one", "key", keys[0].Name, "others", len(keys)-1)
		}
		// The list of needed keys shrinks first, because a needed key that is missing prevents every start.
		if err := k.recordNeededKeys(keys[:1]); err != nil {
			return err
		}
		if err := k.writeConfig(keys[:1], k.Plain); err != nil {
			return err
		}
		return k.writeKeys(keys[:1])
	})
}

// rewrite updates every Secret without a change. The API server then stores those again that are not
// encrypted as configured.
func (k Rewriter) rewrite(ctx context.Context) error {
	c, err := kubernetes.NewForConfig(k.Root)
	if err != nil {
		return err
	}
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := c.CoreV1().Secrets("").List(ctx, options)
		if err != nil {
			return fmt.Errorf("list the stored Secrets: %w", err)
		}
		for i := range list.Items {
			s := &list.Items[i]
			_, err := c.CoreV1().Secrets(s.Namespace).Update(ctx, s, metav1.UpdateOptions{})
			if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // others rewrote it
				return fmt.Errorf("rewrite Secret %s/%s: %w", s.Namespace, s.Name, err)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// stored reports whether every Secret in etcd is stored as configured.
func (k Rewriter) stored(ctx context.Context, key encryptionKey) (bool, error) {
	return k.allEncryptedWith(ctx, secretsPrefix, key)
}

// allEncryptedWith reports whether every Secret in etcd with the prefix is encrypted with the key, or plain text if
// configured.
func (k Rewriter) allEncryptedWith(ctx context.Context, prefix string, key encryptionKey) (bool, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{k.Etcd}, Logger: zap.NewNop(), Context: ctx})
	if err != nil {
		return false, err
	}
	defer func() { _ = c.Close() }()
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		page, err := c.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(pageSize))
		if err != nil {
			return false, fmt.Errorf("read how Secrets are stored: %w", err)
		}
		for _, kv := range page.Kvs {
			if k.Plain && bytes.HasPrefix(kv.Value, []byte(encrypted)) || !k.Plain && !bytes.HasPrefix(kv.Value, []byte(encrypted+key.Name+":")) {
				return false, nil
			}
		}
		if !page.More || len(page.Kvs) == 0 {
			return true, nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}
