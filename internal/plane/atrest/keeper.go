package atrest

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
	// lookEvery is how often the file of keys is looked at, and what is not as it says.
	lookEvery = 2 * time.Second
	// pageSize is how many Secrets are read at once.
	pageSize = 100
	// stored is where kube-apiserver keeps Secrets in etcd.
	stored = "/registry/secrets/"
	// probeName is the Secret in kube-system by which it is known what the API server does.
	probeName = "slipway-encryption-probe"
	// encrypted is in front of what a key of ours encrypted: its name and a colon follow.
	encrypted = "k8s:enc:secretbox:v1:"
)

// Keeper makes what is stored follow the file of keys.
type Keeper struct {
	Files
	// Plain: Secrets are to be plain text.
	Plain bool
	// Etcd is the endpoint of the database, Root a client configuration that may do everything.
	Etcd string
	Root *rest.Config
}

// Run works until ctx ends. What fails is logged and done later: the API server reads all that is stored meanwhile.
func (k Keeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var done []Key
	for {
		if keys, err := k.step(ctx, done); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "encrypt the stored Secrets with the first key")
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

// step returns the keys when what is stored follows them; nil: it does not yet. done are those of which that is known.
func (k Keeper) step(ctx context.Context, done []Key) ([]Key, error) {
	keys, err := k.readKeys()
	if err != nil || len(keys) == 0 || slices.EqualFunc(keys, done, same) {
		return nil, err
	}
	if err := k.locked(func() error { // the new key may be used from here on
		if err := k.need(keys); err != nil {
			return err
		}
		return k.writeConfig(keys, k.Plain)
	}); err != nil {
		return nil, err
	}
	if follows, err := k.probe(ctx, keys[0]); err != nil || !follows { // the API server has not read its file yet
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
	return keys[:1], k.forget(keys)
}

// probe reports whether the API server writes as the keys say: by a Secret of its own, which it writes and finds in etcd.
func (k Keeper) probe(ctx context.Context, key Key) (bool, error) {
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
	return k.all(ctx, stored+metav1.NamespaceSystem+"/"+probeName, key)
}

func same(a, b Key) bool { return a.Name == b.Name && bytes.Equal(a.Secret, b.Secret) }

// forget leaves the first of the keys alone, unless another was put in front meanwhile.
func (k Keeper) forget(keys []Key) error {
	return k.locked(func() error {
		now, err := k.readKeys()
		if err != nil || !slices.EqualFunc(now, keys, same) {
			return err
		}
		if len(keys) > 1 {
			klog.InfoS("every stored Secret is encrypted with the first key: the others are forgotten", "key", keys[0].Name, "others", len(keys)-1)
		}
		// What is needed shrinks first: a key that is needed and is not there lets nothing start.
		if err := k.need(keys[:1]); err != nil {
			return err
		}
		if err := k.writeConfig(keys[:1], k.Plain); err != nil {
			return err
		}
		return k.writeKeys(keys[:1])
	})
}

// rewrite writes every Secret as it is: the API server stores those once more that are not as its file says.
func (k Keeper) rewrite(ctx context.Context) error {
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
			if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // changed by others is written by others
				return fmt.Errorf("write Secret %s/%s once more: %w", s.Namespace, s.Name, err)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// stored reports whether every Secret in etcd is as the keys say.
func (k Keeper) stored(ctx context.Context, key Key) (bool, error) { return k.all(ctx, stored, key) }

// all reports whether every Secret in etcd below the prefix is encrypted with the key, or, where they are to be, plain text.
func (k Keeper) all(ctx context.Context, prefix string, key Key) (bool, error) {
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
