package extensionconfig

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follower enqueues extensions when the Secret with their certificate authority changes. The controller uses [secrets];
// tests replace it.
type follower interface {
	// follow makes changes of the Secret enqueue the extension and replaces the Secret that was followed before. An
	// empty key follows no Secret.
	follow(extension string, secret client.ObjectKey)
}

// secrets watches the metadata of exactly those Secrets that ExtensionConfigs reference in the annotation that requests
// the injection of caBundle. The manager runs it beside the controller. The manager's cache contains only Secrets of
// clusters, and the content of the others should not be in memory.
type secrets struct {
	client  metadata.Interface
	enqueue func(extension string)

	mu      sync.Mutex
	stopped bool
	by      map[string]client.ObjectKey // extension → Secret
	watches map[client.ObjectKey]chan struct{}
}

// newSecrets returns an instance without watches; [Add] calls it once. enqueue is called with the name of an
// ExtensionConfig.
func newSecrets(c metadata.Interface, enqueue func(string)) *secrets {
	return &secrets{client: c, enqueue: enqueue, by: map[string]client.ObjectKey{},
		watches: map[client.ObjectKey]chan struct{}{}}
}

// Start implements manager.Runnable. It stops the watches with the manager.
func (s *secrets) Start(ctx context.Context) error {
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for key := range s.watches {
		s.end(key)
	}
	return nil
}

// follow replaces the Secret that an ExtensionConfig follows. observe calls it. An empty key ends the watch, also when
// the ExtensionConfig was deleted.
func (s *secrets) follow(extension string, secret client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, had := s.by[extension]
	if s.stopped || had && before == secret || !had && secret == (client.ObjectKey{}) {
		return
	}
	delete(s.by, extension)
	if secret != (client.ObjectKey{}) {
		s.by[extension] = secret
		if s.watches[secret] == nil {
			s.watches[secret] = s.begin(secret)
		}
	}
	if had && len(s.users(before)) == 0 {
		s.end(before)
	}
}

// begin starts to watch a Secret. The callers of begin, end and users hold mu; the informer calls changed later, on its
// own goroutine.
func (s *secrets) begin(key client.ObjectKey) chan struct{} {
	stop := make(chan struct{})
	only := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", key.Name).String()
	}
	informer := metadatainformer.NewFilteredMetadataInformer(s.client, corev1.SchemeGroupVersion.WithResource("secrets"),
		key.Namespace, 0, cache.Indexers{}, only).Informer()
	changed := func() {
		s.mu.Lock()
		users := s.users(key)
		s.mu.Unlock()
		for _, extension := range users {
			s.enqueue(extension)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(_, _ any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	if err == nil { // an error occurs only for a stopped informer
		go informer.Run(stop)
	}
	return stop
}

func (s *secrets) end(key client.ObjectKey) {
	close(s.watches[key])
	delete(s.watches, key)
}

func (s *secrets) users(key client.ObjectKey) []string {
	var out []string
	for extension, secret := range s.by {
		if secret == key {
			out = append(out, extension)
		}
	}
	return out
}
