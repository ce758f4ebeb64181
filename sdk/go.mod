module github.com/slipwayhq/slipway/sdk

go 1.26.0

require (
	github.com/gobuffalo/flect v1.0.3
	k8s.io/api v0.36.3
	k8s.io/apimachinery v0.36.3
	sigs.k8s.io/cluster-api/api v1.14.2
)
