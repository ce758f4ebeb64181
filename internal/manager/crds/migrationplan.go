package crds

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Phase is a phase of the storage migration. The manager skips the phases of its flag --skip-crd-migration-phases.
type Phase string

// Values of --skip-crd-migration-phases, which are those of the reference implementation. All selects both phases.
const (
	allPhases               Phase = "All"
	storageVersionMigration Phase = "StorageVersionMigration"
	cleanupManagedFields    Phase = "CleanupManagedFields"
)

// ParsePhases parses the values of --skip-crd-migration-phases. The error has the kind Invalid and names the
// flag. `slipway manager` calls it.
func ParsePhases(texts []string) ([]Phase, error) {
	var out []Phase
	for _, text := range texts {
		switch p := Phase(strings.TrimSpace(text)); p {
		case allPhases, storageVersionMigration, cleanupManagedFields:
			out = append(out, p)
		case "":
		default:
			return nil, fault.New(fault.Invalid, "InvalidFlag",
				"--skip-crd-migration-phases: %q is no phase; the phases are %s, %s and %s", text, storageVersionMigration, cleanupManagedFields, allPhases)
		}
	}
	return out, nil
}

// plan defines the migration of the objects of a CRD, which [Migrator.Migrate] executes.
type plan struct {
	// Version is the storage version.
	Version string
	// Store means that some objects may be stored in another version.
	Store bool
	// Clean means that managed fields of objects may refer to versions that are no longer served.
	Clean bool
	// Served versions.
	Served []string
	// Done means that this generation of the CRD was migrated already.
	Done bool
}

// observed reports whether the current generation of a CRD was migrated. A CRD that has not changed since its
// creation needs no migration.
func observed(generation int64, annotations map[string]string) bool {
	seen, known := annotations[clusterv1.CRDMigrationObservedGenerationAnnotation]
	if !known {
		return generation <= 1
	}
	return seen == strconv.FormatInt(generation, 10)
}

// decide plans the migration of the objects of a CRD. It is pure; [Migrator.Migrate] calls it.
//
//	this generation was migrated                             nothing
//	otherwise                                                clean up managed fields
//	if status.storedVersions has more than the storage one   also rewrite the objects, then update storedVersions
//
// Phases in skip are left out.
func decide(crd *apiextensionsv1.CustomResourceDefinition, skip []Phase) plan {
	p := plan{Done: observed(crd.Generation, crd.Annotations) || slices.Contains(skip, allPhases)}
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
	p.Store = !slices.Equal(crd.Status.StoredVersions, []string{p.Version}) && !slices.Contains(skip, storageVersionMigration)
	p.Clean = !slices.Contains(skip, cleanupManagedFields)
	return p
}

func (p plan) String() string {
	return fmt.Sprintf("store again in %s: %t, clean managed fields: %t", p.Version, p.Store, p.Clean)
}
