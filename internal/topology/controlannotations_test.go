package topology

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// carried are the annotations of Cluster API that metadata of a topology may have: the contract documents them for that, or they mean
// nothing on the objects of a topology.
func carried() []string {
	return []string{
		clusterv1.AutoscalerMinSizeAnnotation, clusterv1.AutoscalerMaxSizeAnnotation, clusterv1.ReplicasManagedByAnnotation,
		clusterv1.ClusterTopologyDeferUpgradeAnnotation, clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation,
		clusterv1.ExcludeNodeDrainingAnnotation, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation, clusterv1.MachineSkipRemediationAnnotation,
		clusterv1.MachineSetSkipPreflightChecksAnnotation, controlplanev1.SkipCoreDNSAnnotation, controlplanev1.SkipKubeProxyAnnotation,
		clusterv1.PreDrainDeleteHookAnnotationPrefix + "/backup", clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/backup",
		"example.com/team", "team", "slipway.dev.example.com/team",
	}
}

// steered are those that it may not have.
func steered() []string {
	return []string{
		clusterv1.PausedAnnotation, clusterv1.ManagedByAnnotation, clusterv1.DeleteMachineAnnotation, clusterv1.RemediateMachineAnnotation,
		clusterv1.DisableMachineCreateAnnotation, clusterv1.MachineCertificatesExpiryDateAnnotation, clusterv1.RevisionAnnotation,
		clusterv1.DesiredReplicasAnnotation, clusterv1.MaxReplicasAnnotation, clusterv1.ClusterTopologyUpgradeStepAnnotation,
		clusterv1.UpdateInProgressAnnotation, clusterv1.TopologyDryRunAnnotation, clusterv1.TemplateClonedFromNameAnnotation,
		controlplanev1.RemediationForAnnotation, controlplanev1.RemediationInProgressAnnotation,
		runtimev1.PendingHooksAnnotation, runtimev1.OkToDeleteAnnotation, "clusterctl.cluster.x-k8s.io/block-move",
	}
}

func TestSteering(t *testing.T) { // TP-04
	for _, name := range carried() {
		if IsControlAnnotation(name) {
			t.Errorf("%s is refused", name)
		}
	}
	for _, name := range steered() {
		if !IsControlAnnotation(name) {
			t.Errorf("%s is carried", name)
		}
	}
}

// Every annotation that this program defines steers controllers, or is listed as one that a topology may carry: a new one is decided about.
func TestOwnAnnotationsAreSteering(t *testing.T) {
	named, found := regexp.MustCompile(`(?i)annotation`), 0
	for _, root := range []string{"../../api", "../../internal", "../../sdk"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				spec, ok := node.(*ast.ValueSpec)
				if !ok {
					return true
				}
				for i, name := range spec.Names {
					if !named.MatchString(name.Name) || i >= len(spec.Values) {
						continue
					}
					literal, ok := spec.Values[i].(*ast.BasicLit)
					if !ok {
						continue
					}
					value, err := strconv.Unquote(literal.Value)
					if err != nil || !strings.Contains(value, "slipway.dev/") {
						continue
					}
					found++
					if !IsControlAnnotation(value) && !slices.Contains(carried(), value) {
						t.Errorf("%s: %s = %q is neither steering nor listed as carried", path, name.Name, value)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 15 {
		t.Errorf("found %d annotations only", found)
	}
}
