package condition

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// LingerAfter is how long the deletion of an object may take before its owner's messages mention it, as in Cluster API.
// The messages contain it as "15m".
const LingerAfter = 15 * time.Minute

// Lingering returns a message with the members whose deletion takes longer than [LingerAfter] and the stages of these
// deletions, which are the reasons of their Deleting conditions: "Machines m1, m2 in deletion since more than 15m,
// stage: DrainingNode". Owners of Machines add it to their conditions ScalingDown and Deleting. It returns an empty
// string if there are none. All members must be of one kind. Package machines calls it.
func Lingering(members []AggregateMember, now time.Time) string {
	var late []AggregateMember
	var stages []string
	for _, m := range members {
		if m.Deleted.IsZero() || now.Sub(m.Deleted.Time) < LingerAfter {
			continue
		}
		late = append(late, m)
		c := m.Conditions.Get(clusterv1.DeletingCondition)
		if c != nil && c.Status == metav1.ConditionTrue && !slices.Contains(stages, c.Reason) {
			stages = append(stages, c.Reason)
		}
	}
	if len(late) == 0 {
		return ""
	}
	text := subjects(late) + " in deletion since more than 15m"
	if len(stages) > 0 {
		slices.Sort(stages)
		text += ", stage: " + strings.Join(stages, ", ")
	}
	return text
}
