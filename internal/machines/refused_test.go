package machines_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines"
)

// A quota on Machines that lasts must not create and delete the objects of each Machine at each attempt, and what is said is the
// quota's refusal, whatever becomes of the clean-up.
func TestRefusedCreation(t *testing.T) { // MS-04
	quota := apierrors.NewForbidden(schema.GroupResource{Group: "cluster.x-k8s.io", Resource: "machines"}, "a", errors.New("exceeded quota"))
	unsupported := apierrors.NewBadRequest("the webhook does not support dry runs")
	for name, tc := range map[string]struct {
		reason  string
		dryRun  error
		refuses []error
		want    []string
	}{
		"quota": {"only rehearsed after the first refusal", quota, []error{quota, quota, quota}, []string{
			"create FooMachine", "create Machine: refused", "delete FooMachine",
			"rehearse FooMachine", "rehearse Machine: refused",
			"rehearse FooMachine", "rehearse Machine: refused"}},
		"quota raised": {"and not rehearsed any more once it succeeded", nil, []error{quota, nil, nil}, []string{
			"create FooMachine", "create Machine: refused", "delete FooMachine",
			"rehearse FooMachine", "rehearse Machine", "create FooMachine", "create Machine",
			"create FooMachine", "create Machine"}},
		"no dry runs": {"a rehearsal that is not possible holds up nothing", unsupported, []error{quota, nil}, []string{
			"create FooMachine", "create Machine: refused", "delete FooMachine",
			"rehearse FooMachine", "rehearse Machine: refused", "create FooMachine", "create Machine"}},
		"no refusal": {"another error may pass by itself", nil, []error{errors.New("no answer"), nil}, []string{
			"create FooMachine", "create Machine: refused", "delete FooMachine", "create FooMachine", "create Machine"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log []string
			var refusal error
			c := world(t, interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, opts ...client.PatchOption) error {
					verb, err, kind := "create ", refusal, o.GetObjectKind().GroupVersionKind().Kind
					if len((&client.PatchOptions{}).ApplyOptions(opts).DryRun) > 0 {
						verb, err = "rehearse ", tc.dryRun
					}
					if kind != "Machine" {
						err = nil
					}
					if log = append(log, verb+kind); err != nil {
						log[len(log)-1] += ": refused"
					}
					return err
				},
				Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
					log = append(log, "delete "+o.GetObjectKind().GroupVersionKind().Kind)
					return errors.New("StorageError: invalid object")
				},
			})
			k := machines.MachineWriter{Live: c, Writer: kube.NewWriter(c, "test"), Manager: manager, MetadataManager: manager + "-metadata", Pending: &machines.Pending{}}
			s := machines.State{Now: now, Definition: controlPlane(), Manager: manager}
			for i := range tc.refuses {
				refusal = tc.refuses[i]
				err := k.Act(t.Context(), s, machines.Create{Names: []string{"a"}, Why: "scale up"})
				if (err == nil) != (refusal == nil) || err != nil && strings.Contains(err.Error(), "StorageError") {
					t.Errorf("attempt %d: %v", i, err)
				}
			}
			if diff := cmp.Diff(tc.want, log); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
