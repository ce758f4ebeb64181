package encryptionkeys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
)

const (
	// pageSize is how many objects are read at once, and parallel how many are written.
	pageSize, parallel = 500, 8
	// perSecond is how many requests are made in a second at most.
	perSecond = 400
	// named is how many objects that could not be written are named, and said how much is said of each, in bytes.
	named, said = 5, 300
	// limitPause is how long a request waits when the cluster takes no more of its kind for now, and limitTries how often it is made.
	limitPause, limitTries = time.Second, 120
	// eventsGroup has the Events of the core once more: both are stored in the same place.
	eventsGroup = "events.k8s.io"
)

// RewriteAll has the API server write everything once more that is not stored as it is to be, and returns how many objects it
// looked at. It asks for changes that change nothing: what is stored with the right key stays as it is, and no one who watches sees
// anything. Everything means every resource, not only those that are encrypted now: others may have been before.
func RewriteAll(ctx context.Context, config *rest.Config) (n int, err error) {
	defer func() {
		switch refused := (apierrors.APIStatus)(nil); {
		case err == nil, fault.As(err) != nil:
		case errors.As(err, &refused): // what it says is of the workload cluster, and not of the management cluster
			err = fault.New(fault.Transient, ReasonNotRewritten, "the workload cluster fails, so that the old keys are kept: %s; correct that, and run the command again", clip(err.Error())).From(err)
		default:
			err = fault.New(fault.Unreachable, ReasonUnreachable, "the workload cluster does not answer: run the command again to continue").From(err)
		}
	}()
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.WarningHandler = perSecond, perSecond, rest.NoWarnings{}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	resources, err := stored(ctx, config)
	if err != nil {
		return 0, err
	}
	r := rewriter{client: objects}
	for _, resource := range resources {
		if err := r.all(ctx, resource); err != nil {
			return r.objects, err
		}
	}
	if len(r.failed) > 0 {
		slices.Sort(r.failed)
		more := ""
		if n := r.failures - named; n > 0 {
			more = fmt.Sprintf("\n* and %d more", n)
		}
		return r.objects, fault.New(fault.Invalid, ReasonNotRewritten,
			"objects could not be written once more, so that the old keys are kept: make that possible, or delete the objects, and run the command again:\n* %s%s",
			strings.Join(r.failed, "\n* "), more)
	}
	return r.objects, nil
}

// stored are the resources that the API server stores itself: those that it lists and changes, each in the newest of the versions for which
// no other server answers, in which it is likely to be stored.
func stored(ctx context.Context, config *rest.Config) ([]schema.GroupVersionResource, error) {
	elsewhere, err := aggregated(ctx, config)
	if err != nil {
		return nil, err
	}
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	_, lists, err := api.ServerGroupsAndResources()
	var partly *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &partly) {
		for version, cause := range partly.Groups {
			if !elsewhere[version] {
				return nil, fmt.Errorf("reading the resources of %s: %w", version, cause)
			}
		}
	} else if err != nil {
		return nil, fmt.Errorf("reading the resources of the workload cluster: %w", err)
	}
	slices.SortStableFunc(lists, func(a, b *metav1.APIResourceList) int {
		return apiversion.CompareKubeAwareVersionStrings(versionOf(b), versionOf(a))
	})
	var out []schema.GroupVersionResource
	known := map[schema.GroupResource]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || elsewhere[version] || version.Group == eventsGroup {
			continue
		}
		for _, r := range list.APIResources {
			resource := version.WithResource(r.Name)
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "patch") && !known[resource.GroupResource()] {
				known[resource.GroupResource()] = true
				out = append(out, resource)
			}
		}
	}
	return out, nil
}

// versionOf is the version of a list without its group.
func versionOf(list *metav1.APIResourceList) string {
	return list.GroupVersion[strings.Index(list.GroupVersion, "/")+1:]
}

// aggregated are the versions of groups for which other servers answer.
func aggregated(ctx context.Context, config *rest.Config) (map[schema.GroupVersion]bool, error) {
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	list, err := c.Resource(services).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing APIServices: %w", err)
	}
	out := map[schema.GroupVersion]bool{}
	for _, item := range list.Items {
		spec, _ := item.Object["spec"].(map[string]any)
		group, _ := spec["group"].(string)
		version, _ := spec["version"].(string)
		if spec["service"] != nil {
			out[schema.GroupVersion{Group: group, Version: version}] = true
		}
	}
	return out, nil
}

// rewriter writes objects once more, and notes what could not be.
type rewriter struct {
	client metadata.Interface

	mu      sync.Mutex
	objects int
	// failures counts what could not be written; failed are some of them.
	failures int
	failed   []string
}

// all writes all objects of a resource. What is created meanwhile is written with the new keys anyway.
func (r *rewriter) all(ctx context.Context, resource schema.GroupVersionResource) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := r.client.Resource(resource).List(ctx, options)
		if expired := (apierrors.APIStatus)(nil); apierrors.IsResourceExpired(err) && errors.As(err, &expired) {
			// It takes longer than the API server remembers, which goes on with what there is now, or else from the start.
			options.Continue = expired.Status().Continue
			continue
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(parallel)
		for i := range list.Items {
			group.Go(func() error { return r.one(ctx, resource, &list.Items[i]) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// one writes an object once more.
func (r *rewriter) one(ctx context.Context, resource schema.GroupVersionResource, o *metav1.PartialObjectMetadata) error {
	err := write(ctx, r.client.Resource(resource).Namespace(o.Namespace), o)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects++
	var refused apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.Status().Code < 500:
		if r.failures++; len(r.failed) == named {
			return nil
		}
		r.failed = append(r.failed, fmt.Sprintf("%s %s: %s", resource.GroupResource(), (types.NamespacedName{Namespace: o.Namespace, Name: o.Name}), clip(err.Error())))
		return nil
	}
	return fmt.Errorf("writing %s %s/%s once more: %w", resource.GroupResource(), o.Namespace, o.Name, err)
}

// write changes nothing of an object. That it is gone, or was changed by someone else, is as good; who says so may be a webhook that speaks of
// something else, so that the object is looked at. A limit of requests, as EventRateLimit has one, is waited for; an object that is refused by it every time is named
// as one that cannot be written.
func write(ctx context.Context, c metadata.ResourceInterface, o *metav1.PartialObjectMetadata) (err error) {
	for try := range limitTries {
		if try > 0 && pause.For(ctx, limitPause) != nil {
			return err
		}
		if _, err = c.Patch(ctx, o.Name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{}); !apierrors.IsTooManyRequests(err) {
			break
		}
	}
	if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	now, getErr := c.Get(ctx, o.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(getErr):
		return nil
	case getErr != nil:
		return getErr
	case now.UID != o.UID || now.ResourceVersion != o.ResourceVersion:
		return nil
	}
	return err
}

func clip(text string) string {
	if len(text) <= said {
		return text
	}
	return strings.ToValidUTF8(text[:said], "") + " …"
}
