package spark_cep;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's local file system, which sets permissions without a process of their own. */
public class LocalFiles extends LocalFileSystem {
  public LocalFiles() {
    super(new Raw());
  }

  public static class Raw extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission wanted) throws IOException {
      String text = wanted.getUserAction().SYMBOL + wanted.getGroupAction().SYMBOL + wanted.getOtherAction().SYMBOL;
      Files.setPosixFilePermissions(this.pathToFile(path).toPath(), PosixFilePermissions.fromString(text));
    }
  }
}
