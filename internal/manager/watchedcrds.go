package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// watchedPoll is the interval between checks for the CRDs of other providers.
const watchedPoll = time.Second

// awaitWatched waits for the CRDs that the enabled providers watch but do not install, such as those of another
// implementation of the core provider, which may be installed later. [Run] calls it before it adds the controllers. The
// manager reports ready in the meantime, so that the program that started it can install them.
func awaitWatched(ctx context.Context, mgr manager.Manager, cfg Config) error {
	missing, said := providerset.Missing(cfg.Policy.Sets()), false
	err := wait.PollUntilContextCancel(ctx, watchedPoll, true, func(ctx context.Context) (bool, error) {
		var err error
		if missing, err = missingCRDs(ctx, mgr.GetAPIReader(), missing); err != nil || len(missing) == 0 {
			return err == nil, err
		}
		if !said {
			said = true
			cfg.Log.Info("waiting for CRDs of providers that do not run in this manager: install a provider that includes them", "crds", strings.Join(missing, ", "))
			if cfg.Ready != nil {
				cfg.Ready()
			}
		}
		return false, nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("waiting for the CRDs of other providers: %w", err)
	}
	return ctx.Err()
}

// explainMissingKind adds a remedy to the error that results if a CRD is deleted while the manager starts.
func explainMissingKind(err error) error {
	var unknown *meta.NoKindMatchError
	if !errors.As(err, &unknown) {
		return err
	}
	return fault.New(fault.Invalid, "CRDGone", "%s is not served any more: its CRD has just been deleted; start the manager again, which installs it", unknown.GroupKind).From(err)
}

// missingCRDs returns the names of the CRDs that are not established.
func missingCRDs(ctx context.Context, live client.Reader, names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := live.Get(ctx, client.ObjectKey{Name: name}, crd); client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		established := false
		for _, c := range crd.Status.Conditions {
			established = established || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}
		if !established {
			out = append(out, name)
		}
	}
	return out, nil
}
