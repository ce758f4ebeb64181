// Package sdk is the root of Slipway's public Go API.
package sdk
