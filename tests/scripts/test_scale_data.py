"""Tables with features from data that others publish, on small copies of their layouts."""

import numpy as np
import pandas as pd
import pytest

from dre_jax.data import SearchSpace, Task
from dre_jax.data.hpob import write_dataset
from dre_jax.errors import DataError


def test_runs_of_all_sizes_and_tuners_are_in_one_table(part, tmp_path):
    folder = tmp_path / "Data" / "exascale" / "sw4lite"
    for name, text in {
        **{
            f"ytopt_bo_source_tasks/sw4lite_{size}": "p0,p1,objective,elapsed_sec\n4, ,5.5,9\n"
            for size in ("S", "M", "L")
        },
        "gc_tla_fewshot/sw4lite_SM_1": "p0,p1,objective,predicted,elapsed_sec\n8,a b,6.5,0,9\n",
        "gptune_fewshot/sw4lite_SM_2": "p0,p1,t0,objective,elapsed_sec\n2,a b,4,1.0,9\n",
        "gptune_fewshot/sw4lite_ML_2": "p0,p1,t0,objective,elapsed_sec\n2,,4,,9\n",
        "gptune_fewshot/sw4lite_XL_2": "p0,p1,t0,objective,elapsed_sec\n2,,4,7.5,9\n",
    }.items():
        path = folder / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    table = part("scale_data").kernel_table(tmp_path, "sw4lite")
    expected = [[3, 4, "none", 5.5], [4, 8, "a b", 6.5], [4, 2, "a b", np.nan], [5, 4, "none", 5.5]]
    expected += [[6, 2, "none", np.nan], [7, 4, "none", 5.5]]
    expected = pd.DataFrame(expected, columns=["size", "p0", "p1", "seconds"])
    pd.testing.assert_frame_equal(table.drop(columns="benchmark").reset_index(drop=True), expected, check_dtype=False)
    with pytest.raises(DataError, match="no runs of amg, size S"):
        part("scale_data").kernel_table(tmp_path, "amg")


def test_trainings_have_the_description_of_their_data_set(part, tmp_path):
    x, y = np.linspace(0.0, 1.0, 14).reshape(2, 7), np.array([0.5, 0.75])
    tasks = {name: Task(name, x, y) for name in ("car", "adult")}
    designs = {"adult": {"test0": np.array([0])}}
    write_dataset(tmp_path, [SearchSpace("networks", {"car": tasks["car"]}, {}, {"adult": tasks["adult"]}, designs)])
    path = tmp_path / "metadata.csv"
    path.write_text("task,name,nrows,nfeatures,nclasses\nt,adult,48842,15,2\nt,car,1728,7,4\n")
    table = part("scale_data").lcbench_table(tmp_path, path)
    assert table[["data_set", "rows", "columns", "classes"]].drop_duplicates().to_numpy().tolist() == [
        ["car", 1728, 7, 4],
        ["adult", 48842, 15, 2],
    ]
    np.testing.assert_allclose(table.iloc[:2, 4:], np.c_[x, y], atol=1e-6)
    path.write_text("task,name,nrows,nfeatures,nclasses\nt,adult,48842,15,2\n")
    with pytest.raises(DataError, match="no data set 'car'"):
        part("scale_data").lcbench_table(tmp_path, path)
