// Package plan implements the commands that show decisions of the controllers and the causes of problems. None of them
// writes to a management cluster.
//
// The plan command shows the effects of a change before it is made. It reads the proposed and the existing objects,
// runs the controllers on a copy in memory (package internal/plan), and prints their actions (plan_text.go). It never
// calls lifecycle hooks, and calls other Runtime Extensions only with --call-extensions.
//
// The explain command shows the root cause chain of an object (package internal/rootcause), and the last plan that the
// running manager made for it: its actions, the objects that it waits for, and the event that ends each wait. Without
// an object it lists the problems of a namespace. It reads plans from the diagnostics of the manager, with the
// credentials of the connection to the API server (explain_manager.go), and does without them if there is no Slipway
// manager.
//
// The ui command starts the server of package internal/ui on a loopback address, and prints the address with the token
// until the command is interrupted. The flags --kubeconfig and --kubeconfig-context may be repeated; every management
// cluster gets a tab:
//
//	nothing                       the management cluster that every other command uses
//	several kubeconfigs           the current context of each
//	one kubeconfig, contexts      each context of it
//	several of both               the first kubeconfig with the first context, and so on
package plan
