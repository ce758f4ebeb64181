// Package upgradeplan helps with the hook GenerateUpgradePlan: it makes a plan from the versions that there are, and checks one
// by the rules that the caller checks it by.
//
//	plans := upgradeplan.Planner{Versions: func(ctx context.Context, cluster *clusterv1.Cluster) ([]string, error) {
//		return images.Versions(ctx)
//	}}
//	extension.OnErr("plan", hooksv1.GenerateUpgradePlan, plans.Generate)
//
// Does: GenerateUpgradePlan ([Planner]), plans ([Plan]), checks of plans ([Check]).
//
// Never: upgrades anything.
//
// Read first: [Planner], [Check].
package upgradeplan
