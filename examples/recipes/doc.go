// Package recipes holds the code that docs/recipes.md quotes, a file for each recipe.
//
// What is quoted compiles, and its tests run it in virtual time. A test keeps page and files the same: change both.
package recipes
