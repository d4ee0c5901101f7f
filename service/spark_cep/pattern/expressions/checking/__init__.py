"""The checks of an expression: types, symbols of enums, growth of texts, cost of lambdas."""
