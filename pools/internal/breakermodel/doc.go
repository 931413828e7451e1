// Package breakermodel is what a breaker does, written down a second time in the plainest way: for tests to compare with.
package breakermodel
