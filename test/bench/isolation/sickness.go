package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/test/bench/follow"
	"github.com/slipwayhq/slipway/test/bench/settle"
	"github.com/slipwayhq/slipway/test/bench/template"
)

// sickness is what is wrong with the sick clusters during a phase.
type sickness struct {
	name        string // for programs
	title       string // for people
	annotations map[string]string
}

// well is no sickness.
func well() sickness { return sickness{name: "well", title: "all are well"} }

func sicknesses() []sickness {
	return []sickness{
		{"down", "some are down", map[string]string{hostedv1.APIDownAnnotation: "always"}},
		{"slow", "some take a second to answer", map[string]string{hostedv1.APISlowAnnotation: "1s"}},
		{"hanging", "some do not answer within any time limit", map[string]string{hostedv1.APISlowAnnotation: "10m"}},
		{"failing", "some answer with status 500", map[string]string{hostedv1.APIErrorsAnnotation: "500"}},
	}
}

// patch makes the annotations of a control plane those of the sickness.
func (s sickness) patch() ([]byte, error) {
	annotations := map[string]any{ // null removes one
		hostedv1.APIDownAnnotation: nil, hostedv1.APISlowAnnotation: nil, hostedv1.APIErrorsAnnotation: nil,
	}
	for key, value := range s.annotations {
		annotations[key] = value
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

const (
	// seenWithin only ends a run in which a sickness does not set in.
	seenWithin = time.Minute
	// healthy is how soon the API of a cluster answers that is well.
	healthy = 500 * time.Millisecond
	// look is the time between two looks whether it answers.
	look = 100 * time.Millisecond
)

// during reports whether it is a phase with the sickness.
func (s sickness) during(p phase) bool { return p.sickness == s.name }

// infect makes the sick clusters what s says and waits until they are.
func (f *fleet) infect(ctx context.Context, s sickness) error {
	ctx, cancel := context.WithTimeout(ctx, seenWithin)
	defer cancel()
	patch, err := s.patch()
	if err != nil {
		return err
	}
	for n := range f.sick {
		plane := f.template.Object(hostedv1.GroupVersion.WithKind("HostedControlPlane"), template.Cluster(n))
		if err := f.client.Patch(ctx, plane, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("annotate HostedControlPlane %s: %w", plane.GetName(), err)
		}
	}
	for n := range f.sick {
		if err := f.awaitHealth(ctx, n, len(s.annotations) == 0); err != nil {
			return err
		}
	}
	return nil
}

// awaitHealth waits until a cluster is well, or is not.
func (f *fleet) awaitHealth(ctx context.Context, n int, want bool) error {
	config, err := follow.Workload(ctx, f.pair.Config, types.NamespacedName{Namespace: f.template.Namespace, Name: template.Cluster(n)})
	if err != nil {
		return err
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer c.CloseIdleConnections()
	for isHealthy(ctx, c, config.Host) != want {
		if err := settle.Pause(ctx, look); err != nil {
			return fmt.Errorf("cluster %s: wait until it is well: %v: %w", template.Cluster(n), want, err)
		}
	}
	return nil
}

func isHealthy(ctx context.Context, c *http.Client, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, healthy)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := c.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close() // nothing is read from it
	return response.StatusCode == http.StatusOK
}
