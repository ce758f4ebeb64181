package extensiontools

// Tests outside of the package use these private names.
type ProxyOptions = proxyOptions

var (
	AwaitDiscovery   = waitForDiscovery
	DeleteRegistered = deleteRegistered
	Register         = register
	StartProxy       = startProxy
)
