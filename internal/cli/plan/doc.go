// Package plan implements the two commands that show decisions of the controllers. Neither writes to a management
// cluster.
//
// The plan command shows the effects of a change before it is made. It reads the proposed and the existing objects,
// runs the controllers on a copy in memory (package internal/plan), and prints their actions (plan_text.go). It never
// calls lifecycle hooks, and calls other Runtime Extensions only with --call-extensions.
//
// The explain command shows the last plan that the running manager made for an object: its actions, what it waits for,
// on which object, and what ends each wait. It reads the plan from the diagnostics of the manager, with the credentials
// of the connection to the API server (explain_manager.go).
package plan
