package loadbalancer

// Tests outside of the package use these private names.
type Balancer = balancer

var New = newBalancer
