package migration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Phase is one of the two things a migration does.
type Phase string

// The phases; [All] stands for both.
const (
	All                     Phase = "All"
	StorageVersionMigration Phase = "StorageVersionMigration"
	CleanupManagedFields    Phase = "CleanupManagedFields"
)

// ParsePhases reads the values of --skip-crd-migration-phases. The error is Invalid and names the flag.
func ParsePhases(texts []string) ([]Phase, error) {
	var out []Phase
	for _, text := range texts {
		switch p := Phase(strings.TrimSpace(text)); p {
		case All, StorageVersionMigration, CleanupManagedFields:
			out = append(out, p)
		case "":
		default:
			return nil, fault.New(fault.Invalid, "InvalidFlag",
				"--skip-crd-migration-phases: %q is no phase; the phases are %s, %s and %s", text, StorageVersionMigration, CleanupManagedFields, All)
		}
	}
	return out, nil
}

// Plan is what to do about the objects of one CRD.
type Plan struct {
	// Version in which the API server stores objects.
	Version string
	// Store: some objects may be stored in another version.
	Store bool
	// Clean: what objects remember of field managers may name versions that are not served.
	Clean bool
	// Served versions.
	Served []string
	// Done: this generation of the CRD was migrated before; there is nothing to do.
	Done bool
}

// Observed reports whether a CRD with this metadata was migrated in its present generation. One that was never changed
// since it was created has nothing to migrate.
func Observed(generation int64, annotations map[string]string) bool {
	seen, known := annotations[clusterv1.CRDMigrationObservedGenerationAnnotation]
	if !known {
		return generation <= 1
	}
	return seen == strconv.FormatInt(generation, 10)
}

// Decide says what to do about the objects of a CRD.
//
//	generation was migrated before                 nothing
//	status.storedVersions is not the one stored    store the objects again, then say so
//	otherwise                                      clean what they remember
func Decide(crd *apiextensionsv1.CustomResourceDefinition, skip []Phase) Plan {
	p := Plan{Done: Observed(crd.Generation, crd.Annotations) || slices.Contains(skip, All)}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			p.Version = v.Name
		}
		if v.Served {
			p.Served = append(p.Served, v.Name)
		}
	}
	if p.Done {
		return p
	}
	p.Store = !slices.Equal(crd.Status.StoredVersions, []string{p.Version}) && !slices.Contains(skip, StorageVersionMigration)
	p.Clean = !slices.Contains(skip, CleanupManagedFields)
	return p
}

// String says what the plan does.
func (p Plan) String() string {
	return fmt.Sprintf("store again in %s: %t, clean managed fields: %t", p.Version, p.Store, p.Clean)
}
