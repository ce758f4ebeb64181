// Package upgradeplan supports handlers of the hook GenerateUpgradePlan: a [Planner] creates a plan from the available
// versions ([Plan]), and [Check] validates a plan by the same rules as the caller.
//
//	plans := upgradeplan.Planner{Versions: func(ctx context.Context, cluster *clusterv1.Cluster) ([]string, error) {
//		return images.Versions(ctx)
//	}}
//	extension.OnErr("plan", hooksv1.GenerateUpgradePlan, plans.Generate)
package upgradeplan
